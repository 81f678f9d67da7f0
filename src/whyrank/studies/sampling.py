"""Drawing contrasts in rounds where not all are scored: how many of each study, and when a study has enough.

Every text of a query has a position, a hash of the seed and its ids. Texts are drawn in that order, the same for all
studies, so that studies share them; a contrast is drawn once all its texts are. Each round draws further, from the
queries in proportion to their contrasts, and the estimate of a score needs no weights.

A study is looked at after each round that adds to it, at most `LOOKS` times. Look k may spend the share `SHARES[k]`
of the error rate; a look that is known to be the last, because nothing is left to draw, may spend all that is left.
Its interval has the level 1 - 0.05 * share, its p-value is divided by the share. As the shares of a study add up to
at most 1, Bonferroni's inequality bounds the probability that any of its looks misses by 5%, whatever rule ended the
study. Lan and DeMets, Discrete sequential boundaries for clinical trials, Biometrika 70 (1983).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from whyrank.core import Ints, Study, WhyrankError
from whyrank.data import Collection
from whyrank.studies.contrasts import Contrasts, TextIds, text_position
from whyrank.studies.findings import Finding
from whyrank.studies.reading import reading_of

LOOKS = 4
SHARES = (0.05, 0.1, 0.15)  # of the error rate, for all looks but the last, which may spend the rest
PACE = (0.2, 0.4, 0.65, 1.0)  # of the budget that is spent after each look
PILOT = 200  # contrasts of a study in the first round, where no number of pairs bounds them
GROWTH = (1.1, 16.0)  # by how much a study grows at least and at most from one round to the next
MOST = 100_000  # contrasts of one study that are drawn at most
Positions = npt.NDArray[np.uint64]
_BUDGET = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(pairs?|s|m|h)\s*")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Budget:
    """What an audit may cost: pairs for each ranker, or seconds; and the width at which an interval is narrow enough.

    `calibration` counts the pairs that the calibration of delta takes of it.

    Example:
        >>> Budget.of("20000pairs", width=0.1)
        Budget(pairs=20000, seconds=None, width=0.1, calibration=0)
    """

    pairs: int | None = None
    seconds: float | None = None
    width: float | None = None
    calibration: int = 0

    @classmethod
    def of(cls, spec: str | None, width: float | None = None) -> Budget | None:
        """The budget that `5m`, `90s`, `1h` or `20000pairs` stands for; None where neither is given."""
        if width is not None and not 0 < width < 2:
            raise WhyrankError(f"width {width:g}: an interval lies within -1 and 1, so give a number between 0 and 2")
        if spec is None:
            return None if width is None else cls(width=width)
        found = _BUDGET.fullmatch(spec)
        if not found or not float(found[1]) or (found[2].startswith("pair") and "." in found[1]):
            raise WhyrankError(f"budget {spec!r}: give a time such as 90s, 5m or 1h, or a number such as 20000pairs")
        if found[2].startswith("pair"):
            return cls(pairs=int(found[1]), width=width)
        return cls(seconds=float(found[1]) * _SECONDS[found[2]], width=width)


@runtime_checkable
class TextStudy(Protocol):
    """A study with one contrast per text; it is built for the texts that are drawn and no others."""

    def text_ids(self, collection: Collection) -> list[TextIds]:
        """Every text of the study."""
        ...

    def contrasts_of(self, collection: Collection, drawn: Iterable[TextIds]) -> Contrasts:
        """The contrasts of some texts."""
        ...


@dataclass(frozen=True, eq=False)
class Frame:
    """The sampling frame of a study: the units that can be drawn, in the order in which they are drawn.

    Units are contrasts, of a bias study templates, of a study with one contrast per text these texts.

    Attributes:
        available: how many units there are; beyond `MOST` they are not drawn.
        size: how many can be drawn.
        texts: the positions of the texts that the units need, in the order in which they are first needed.
        needed: the unit that first needs each of these texts.
        made: further texts that each unit needs, which no other study has.
        draw: gives the contrasts of the first so many units.
    """

    available: int
    size: int
    texts: Positions
    needed: Ints
    made: int
    draw: Callable[[int], Contrasts]

    @classmethod
    def of(cls, study: Study, collection: Collection, seed: int) -> Frame:
        """List the texts of a study, or make all its contrasts and keep the first ones."""
        if isinstance(study, TextStudy):
            texts, build = study.text_ids(collection), study.contrasts_of
            positions = np.array([text_position(seed, *each) for each in texts], dtype=np.uint64)
            order = np.argsort(positions, kind="stable")[:MOST]

            def edited(count: int) -> Contrasts:
                return _with_rest(build(collection, [texts[i] for i in order[:count].tolist()]), len(texts) - count)

            return cls(len(texts), len(order), positions[order], np.arange(len(order)), 1, edited)
        every = study.contrasts(collection)
        order, available = every.drawing_order(seed, MOST), every.units
        kept = every.draw(order) if len(order) < available else every
        place = np.searchsorted(np.sort(order), order)

        def taken(count: int) -> Contrasts:
            return _with_rest(kept.draw(place[:count]), available - count)

        cells = kept.cells(seed)[place]
        distinct, first = np.unique(cells, return_index=True)
        by_need = np.argsort(first, kind="stable")
        needed = first[by_need] // max(cells.shape[1], 1)
        return cls(available, len(order), distinct[by_need], needed, 0, taken)


def _with_rest(contrasts: Contrasts, rest: int) -> Contrasts:
    return replace(contrasts, dropped={**contrasts.dropped, "not drawn": rest}) if rest else contrasts


class Drawn(NamedTuple):
    """Contrasts of a study, what they were drawn from, and the share of the error rate that a look at them spends."""

    contrasts: Contrasts
    units: int | None = None
    available: int | None = None
    share: float = 1.0


def draw_contrasts(
    study: Study,
    collection: Collection,
    limit: int | None = None,
    seed: int = 0,
    build: Callable[[Collection], Contrasts] | None = None,
) -> Drawn:
    """All contrasts of a study, or those within a limit; texts are drawn before they are edited.

    `build` makes the contrasts where it is not the study alone that does.
    """
    if limit and isinstance(study, TextStudy):
        frame = Frame.of(study, collection, seed)
        count = min(limit, frame.size)
        return Drawn(frame.draw(count), count, frame.available)
    every = (build or study.contrasts)(collection)
    taken = reading_of(study).sample(every, limit, seed) if limit else every
    return Drawn(taken) if taken is every else Drawn(taken, len(taken), len(every))


def pairs_of(frames: Mapping[str, Frame], counts: Mapping[str, int]) -> int:
    """How many distinct pairs of a query and a text so many units of each study need, at most."""
    drawn = [(frames[name], count) for name, count in counts.items()]
    texts = [frame.texts[: np.searchsorted(frame.needed, count)] for frame, count in drawn]
    made = sum(frame.made * count for frame, count in drawn)
    return len(np.unique(np.concatenate(texts))) + made if texts else 0


class Look(NamedTuple):
    """One look at a study: how many units are drawn by now, and the share of the error rate that it may spend."""

    units: int
    share: float


class Forecast(NamedTuple):
    """How the squared width of an interval depends on the number n of units: floor + slope / n.

    The floor is what a study with all contrasts of these queries would have: queries differ.
    """

    floor: float
    slope: float

    @classmethod
    def of(cls, count: int, width: float, half: float) -> Forecast:
        """From the widths with so many units and with half of them."""
        if not math.isfinite(width) or not math.isfinite(half):
            return cls(4.0, 0.0)
        slope = max(0.0, half**2 - width**2) * count
        return cls(max(0.0, width**2 - slope / count), slope)


class Rounds:
    """Decides round by round how far each study is drawn; `saw` tells how wide its interval is by then."""

    def __init__(self, frames: Mapping[str, Frame], budget: Budget) -> None:
        self.frames, self.budget = frames, budget
        self.counts = dict.fromkeys(frames, 0)
        self.widths = dict.fromkeys(frames, math.inf)
        self.spent = dict.fromkeys(frames, 0.0)
        self.last = dict.fromkeys(frames, False)
        self.forecasts = {name: Forecast(math.inf, 0.0) for name in frames}

    def __iter__(self) -> Iterator[dict[str, Look]]:
        """The looks of each round, by study; a study that is not in it keeps its last look."""
        for number in range(LOOKS):
            last, looks = number == LOOKS - 1, dict[str, Look]()
            for name, count in self._next_counts(number).items():
                if number and count == self.counts[name]:
                    continue
                ends = last or self.last[name] or count == self.frames[name].size
                look = Look(count, 1 - self.spent[name] if ends else SHARES[number])
                self.counts[name], looks[name] = count, look
                self.spent[name] += look.share
            yield looks

    def saw(self, name: str, width: float, forecast: Forecast | None = None) -> None:
        """Take note of the width of the interval of a study, the widest over all rankers, and how it will shrink."""
        self.widths[name] = width if math.isfinite(width) else math.inf
        self.forecasts[name] = forecast or Forecast(0.0, self.widths[name] ** 2 * self.counts[name])

    def is_done(self, name: str) -> bool:
        """Whether nothing more is drawn of a study: it was the last look, or its interval is narrow enough."""
        complete = self.counts[name] == self.frames[name].size
        return complete or self.last[name] or self.widths[name] <= (self.budget.width or 0.0)

    def _next_counts(self, number: int) -> dict[str, int]:
        """How many units of each study are drawn after a round, within the part of the budget that it may spend."""
        pairs = self.budget.pairs
        most = None if pairs is None else int(max(1, pairs - self.budget.calibration) * PACE[number])
        if number == 0:
            found = self._largest(self._equal_counts, most, PILOT if most is None else MOST)
            if any(count == 0 < self.frames[name].size for name, count in found.items()):
                first = pairs_of(self.frames, self._equal_counts(1)) / PACE[0]
                least = math.ceil(max(first * 4 / 3, first + self.budget.calibration))  # that takes up to a quarter
                few = f"a budget of {self.budget.pairs:,} pairs is too small"
                raise WhyrankError(f"{few}; give {least:,} or more, or name fewer studies ({len(self.frames)} here)")
            return found
        open_studies = [name for name in self.frames if not self.is_done(name)]
        if self.budget.width is not None:
            found = self.counts | {name: self._reach(name, self.budget.width, number) for name in open_studies}
            if most is None or pairs_of(self.frames, found) <= most:
                return found
            self.last |= dict.fromkeys(open_studies, False)

        def grown(steps: int) -> dict[str, int]:
            """The counts that should make all intervals as narrow as 0.99**steps of the widest possible, 2."""
            target, found = max(2 * 0.99**steps, 0.95 * (self.budget.width or 0.0)), dict(self.counts)
            for name in open_studies:
                factor = min(max((min(self.widths[name], 2.0) / target) ** 2, GROWTH[0]), GROWTH[1])
                found[name] = min(self.frames[name].size, math.ceil(self.counts[name] * factor))
            return found

        narrowest = math.ceil(math.log((self.budget.width or 0.002) * 0.95 / 2) / math.log(0.99))
        found = self._largest(grown, most, narrowest)
        return self.counts if most is not None and pairs_of(self.frames, found) > most else found

    def _reach(self, name: str, width: float, number: int) -> int:
        """How many units a study needs for an interval of a width; where no number of them does, as many as help.

        The next look is the last one where it should reach the width, with a margin, so that it may spend all that is
        left of the error rate; or where a second look, too, says that no number of units does.
        """
        forecast, size, count = self.forecasts[name], self.frames[name].size, self.counts[name]
        target = (0.9 * width) ** 2
        reachable = forecast.floor + forecast.slope / size < target
        wanted = 1.3 * forecast.slope / (target - forecast.floor if reachable else max(forecast.floor, target) / 16)
        self.last[name] = (reachable or number > 1) and wanted <= GROWTH[1] * count
        return min(size, math.ceil(min(max(wanted, GROWTH[0] * count), GROWTH[1] * count)))

    def _equal_counts(self, count: int) -> dict[str, int]:
        return {name: min(frame.size, count) for name, frame in self.frames.items()}

    def _largest(self, counts: Callable[[int], dict[str, int]], most: int | None, highest: int) -> dict[str, int]:
        """The counts of the largest number, up to the highest, that do not need more than `most` pairs."""
        if most is None:
            return counts(highest)
        low, high = 0, highest
        while low < high:
            middle = (low + high + 1) // 2
            if pairs_of(self.frames, counts(middle)) <= most:
                low = middle
            else:
                high = middle - 1
        return counts(low)


def drawing_notes(budget: Budget, findings: Sequence[Finding], pairs: int, price: int | None) -> list[str]:
    """How much was drawn, and why the intervals of some studies are wider than required."""
    saved = f", {max(0, price - pairs):,} fewer than in all" if price is not None else ""
    notes = [f"{pairs:,} distinct pairs of a query and a text were drawn for each ranker{saved}"]
    notes += ["effectiveness is not measured within a budget of pairs"] * (budget.pairs is not None)
    reasons: dict[str, dict[str, None]] = {}
    for finding in findings if budget.width is not None else ():
        width = math.inf if finding.ci_low is None or finding.ci_high is None else finding.ci_high - finding.ci_low
        if finding.group is not None or width <= (budget.width or 0.0):
            continue
        if finding.n_queries < 2:
            why = "an interval needs two queries"
        elif finding.drawn == finding.available:
            why = "all that there is was scored"
        else:
            hardly = "more contrasts of these queries would hardly help, or the forecast fell short"
            why = "the budget was spent" if budget.pairs is not None else hardly
        reasons.setdefault(why, {})[finding.study] = None
    wide = f"intervals wider than {budget.width}, because"
    return [*notes, *(f"{wide} {why}: {', '.join(some)}" for why, some in reasons.items())]
