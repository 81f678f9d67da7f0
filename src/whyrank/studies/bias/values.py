"""Classes of values: the lists that are built in, ranges of numbers, files, and values joined by a plus."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from whyrank.core import BadInput, WhyrankError
from whyrank.data import read_lines

_RANGE = re.compile(r"(\d{1,6})\.\.(\d{1,6})")
_LONGEST_RANGE = 1_000

# The 29 of the published study, in its order.
CAR_MAKES = (
    "Ford Buick Cadillac Porsche Jeep Fiat BMW Chrysler Chevrolet Ferrari Volvo Toyota Hyundai Volkswagen Oldsmobile "
    "Mercedes Jaguar Mazda Renault Audi Packard Peugeot Honda Bentley Nissan Lexus Pontiac Daimler Mitsubishi"
)
CAR_MODELS = (
    "mustang fiesta f-150 taurus bronco explorer escort mondeo corsa polo golf passat jetta beetle tiguan corolla "
    "camry prius yaris hilux rav4 tundra tacoma avensis civic accord jazz cr-v odyssey insight micra altima sentra "
    "qashqai juke leaf maxima cherokee wrangler elantra sonata tucson santa-fe i10 i20 i30 clio megane twingo scenic "
    "cayenne boxster carrera panamera macan corvette camaro silverado tahoe suburban impala malibu cruze astra "
    "escalade eldorado lesabre firebird gto grand-am outlander lancer pajero eclipse miata mx-5 rx-7 cx-5 panda "
    "punto 500 quattro a3 a4 a6 q5 q7 x3 x5 3-series 5-series e-class c-class s-class xc60 xc90 v70 testarossa "
    "continental cutlass xj6 e-type 205 206 208 308"
)
# None that needs an article: "the Netherlands" does not fit where "France" does.
COUNTRIES = (
    "Argentina|Australia|Austria|Belgium|Brazil|Canada|Chile|Colombia|Denmark|Egypt|Ethiopia|Finland|France|Germany|"
    "Ghana|Greece|Hungary|Iceland|India|Indonesia|Ireland|Israel|Italy|Japan|Kenya|Malaysia|Mexico|Morocco|"
    "New Zealand|Nigeria|Norway|Pakistan|Peru|Poland|Portugal|Russia|Singapore|South Africa|South Korea|Spain|Sweden|"
    "Switzerland|Thailand|Ukraine|Vietnam"
)
NATIONALITIES = (
    "American Argentinian Australian Austrian Belgian Brazilian British Canadian Chinese Danish Dutch Egyptian "
    "Ethiopian Finnish French German Greek Hungarian Indian Indonesian Iranian Irish Israeli Italian Japanese Kenyan "
    "Korean Mexican Moroccan Nigerian Norwegian Pakistani Peruvian Polish Portuguese Russian Spanish Swedish Swiss "
    "Thai Turkish Ukrainian Vietnamese"
)
CURRENCIES = (
    "dollars euros pounds yen yuan rupees rubles francs kronor pesos reais lira rand shekels baht ringgit dirhams "
    "zloty forint won"
)
FIRST_NAMES = (
    "Aisha Alice Amir Anna Carlos Chen David Elena Emily Fatima George Hannah Ibrahim Ivan James Jamal John Jose "
    "Kofi Lakisha Laura Lin Maria Mary Mei Michael Mohammed Nia Olga Omar Peter Priya Raj Robert Sarah Sofia Thomas "
    "Yuki Yusuf Zanele"
)
LISTS: Mapping[str, tuple[str, ...]] = {
    "car-makes": tuple(CAR_MAKES.split()),
    "car-models": tuple(CAR_MODELS.split()),
    "countries": tuple(COUNTRIES.split("|")),
    "nationalities": tuple(NATIONALITIES.split()),
    "currencies": tuple(CURRENCIES.split()),
    "first-names": tuple(FIRST_NAMES.split()),
    "letters": tuple("abcdefghijklmnopqrstuvwxyz"),
}
# Values whose words mostly mean other things: to polish, what was won or weighs pounds, a name.
DOUBTFUL: Mapping[str, frozenset[str]] = {
    "currencies": frozenset({"won", "pounds", "rand"}),
    "nationalities": frozenset({"Polish"}),
}


def values_of(given: str) -> tuple[str, ...]:
    """The values that a built-in list, a range `2000..2024`, a file or `a+b+c` stands for.

    A file has one a line; lines that begin with a hash and a blank are comments.
    """
    if given in LISTS:
        return LISTS[given]
    if span := _RANGE.fullmatch(given):
        return _numbers(given, int(span[1]), int(span[2]))
    if "+" not in given or Path(given).is_file():
        lines = [line.text.strip() for line in read_lines(_file(given))]
        return _checked(given, [line for line in lines if line != "#" and not line.startswith("# ")])
    return _checked(given, [value.strip() for value in given.split("+")])


def _file(given: str) -> Path:
    path = Path(given)
    if not path.is_file():
        ways = f"a file with one a line, a+b+c, a range such as 2000..2024, or one of {', '.join(LISTS)}"
        raise WhyrankError(f"values {given!r} is no file; give {ways}")
    return path


def _numbers(given: str, first: int, last: int) -> tuple[str, ...]:
    if not 0 < last - first < _LONGEST_RANGE:
        raise WhyrankError(f"values {given!r}: a range goes up, over {_LONGEST_RANGE:,} numbers at most")
    return tuple(str(number) for number in range(first, last + 1))


def _checked(given: str, found: list[str]) -> tuple[str, ...]:
    """The values, none empty and none twice in whatever case of letters."""
    folded = [" ".join(value.casefold().split()) for value in found]
    twice = next((value for value in folded if folded.count(value) > 1), None)
    if "" in folded:
        raise WhyrankError(f"values {given!r}: one of them is empty")
    if twice is not None:
        raise BadInput(given, f"has the value {twice!r} twice", "leave one out")
    if len(found) < 2:
        raise WhyrankError(f"values {given!r}: give two values at least")
    return tuple(found)
