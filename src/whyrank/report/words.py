"""Figures in a fixed form, the phrases that go with them, and names that are safe in files and pages."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import sha256

from whyrank.core import Call, WhyrankError, parse_call
from whyrank.studies import Finding

DASH = "–"
MINUS = "−"
_REASON = re.compile(r".+ ([0-9][0-9,]*)", re.DOTALL)
_NO_QUESTION = re.compile(r"(?:.+: )?(?:words|documents|queries|not drawn) ", re.DOTALL)  # axioms may count words
_THREE_TEXTS = ("TFC2",)
_ACRONYMS = ("bm25", "bm25t", "ql", "qlt")
_BUNDLED = {"cross:bundled": "the neural model", "bm25t:bundled": "thesaurus BM25"}
_CORRECTIONS = {"holm": "Holm", "bh": "Benjamini–Hochberg", "bonferroni": "Bonferroni", "none": "no"}


def signed(value: float | None, minus: str = MINUS) -> str:
    """A score with two decimals and its sign; a dash where it is undefined; zero has no sign."""
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{abs(value):.2f}"
    if float(text) == 0:
        return text
    return ("+" if value > 0 else minus) + text


def share(value: float | None, decimals: int = 1) -> str:
    """A share in percent; 100% and 0% mean all and none, and what merely rounds to them is marked."""
    if value is None or not math.isfinite(value):
        return DASH
    text, least = f"{100 * value:.{decimals}f}", 10.0**-decimals
    if value < 1 and float(text) >= 100:
        return f">{100 - least:.{decimals}f}%"
    return f"<{least:.{decimals}f}%" if value > 0 and float(text) == 0 else f"{text}%"


def count(value: int) -> str:
    """A whole number with commas between thousands."""
    return f"{value:,}"


def figure(value: float | None, form: str = ".4g", minus: str = MINUS) -> str:
    """A number, with four significant digits by default; a dash where it is undefined; zero has no minus."""
    if value is None or not math.isfinite(value):
        return DASH
    text = format(value, form)
    return text.replace("-", minus if text.strip("-0.%") else "+" * form.startswith("+"))


def bounds(low: float | None, high: float | None, show: Callable[[float], str] = figure) -> str:
    """An interval in brackets."""
    return DASH if low is None or high is None else f"[{show(low)}, {show(high)}]"


def p_value(value: float | None) -> str:
    """A p-value with three decimals."""
    if value is None or not math.isfinite(value):
        return DASH
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def interval(finding: Finding) -> str:
    """The confidence interval of the score."""
    return bounds(finding.ci_low, finding.ci_high, signed)


def share_interval(finding: Finding) -> str:
    """The confidence interval of the share satisfied, in percent."""
    return bounds(finding.satisfied_low, finding.satisfied_high, lambda value: f"{100 * value:.1f}")


def bias_range(finding: Finding, unit: str = "δ") -> str:
    """How far the values of a bias study lie apart: in deltas of the ranker, or in scores where it has none."""
    return figure(finding.range) if finding.range_deltas is None else f"{finding.range_deltas:.1f} {unit}"


def moved(value: float, share: bool = False) -> str:
    """A difference of two scores or ranges with its sign, or of two shares in percentage points."""
    return figure(100 * value if share else value, "+.1f" if share else "+.2f")


def difference(finding: Finding, steps: str = "δ") -> str:
    """The difference from the baseline: of scores, of shares satisfied, or of ranges of bias studies."""
    unit = " points" if finding.conclusion else f" {steps}" if finding.range is not None else ""
    return DASH if finding.difference is None else moved(finding.difference, bool(finding.conclusion)) + unit


def difference_interval(finding: Finding) -> str:
    """The confidence interval of the difference from the baseline, in the same unit."""
    show = partial(moved, share=bool(finding.conclusion))
    return bounds(finding.difference_low, finding.difference_high, show)


def dropped_words(dropped: str) -> str:
    """How many questions could not be asked and why, as sentences; `dropped` is the field of a finding.

    Words, documents and queries that were left out are no questions, and what was not drawn could have been asked:
    both are listed apart.
    """
    reasons = dropped.split("; ") if dropped else []
    questions, others = ([r for r in reasons if bool(_NO_QUESTION.match(r)) is kind] for kind in (False, True))
    said = []
    if questions:
        counts = [int(found[1].replace(",", "")) for found in map(_REASON.fullmatch, questions) if found]
        total = sum(counts)
        head = f"{count(total)} {'question' if total == 1 else 'questions'} could not be asked"
        head = head if len(counts) == len(questions) else "Questions that could not be asked"
        said.append(f"{head}: {'; '.join(questions)}.")
    if others:
        said.append(f"Left out: {'; '.join(others)}.")
    return " ".join(said)


def correction_words(method: str) -> str:
    """How p-values were corrected, as a noun phrase."""
    return f"{_CORRECTIONS.get(method, method)} correction" if method else "correction for the number of tests"


def _of_three(study: str) -> bool:
    return study.removeprefix("axiom/").partition("(")[0] in _THREE_TEXTS


def conclusion_words(conclusion: str, study: str = "") -> str:
    """What an axiom demands, as a sentence; three texts have no winner, but two steps between their scores."""
    winner, low, high = "the winner", "score lower", "score higher"
    if _of_three(study):
        winner, low, high = "the first step between the scores", "be smaller", "be larger"
    if conclusion == "weak":
        return f"Weak conclusion: {winner} must not {low}, so a tie obeys."
    return f"Strict conclusion: {winner} must {high}, so a tie violates."


def agreement_words(finding: Finding) -> str:
    """How far relevance sides with an axiom, as sentences."""
    have = finding.with_relevant or 0
    if not have:
        return "No instance has a relevant document."
    first = f"{count(have)} {'instance has' if have == 1 else 'instances have'} a relevant document"
    if not finding.decided:
        three = _of_three(finding.study)
        differ = "do the steps between their grades differ" if three else "is one text more relevant than the other"
        return f"{first}; in none of them {differ}."
    decided = f"{count(finding.decided)} of them" if have > 1 else "it"
    return f"{first}; relevance decides {decided}, and sides with the axiom in {share(finding.agreement, 0)}."


def listed(names: Sequence[str]) -> str:
    """Names with commas and a last `and`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def short_names(rankers: Iterable[str]) -> dict[str, str]:
    """What readers call each ranker: the last part of a path, without how it computes; the call string if not unique.

    A name that the user chose stays as it is.
    """
    short = {ranker: _short(ranker) for ranker in rankers}
    taken = Counter(name.casefold() for name in short.values())
    return {ranker: name if taken[name.casefold()] == 1 else ranker for ranker, name in short.items()}


def _short(ranker: str) -> str:
    try:
        call = parse_call(ranker)
    except WhyrankError:
        return ranker
    arguments = {name: value for name, value in call.arguments.items() if name != "precision"}
    bare = str(Call(call.name, call.resource))
    parts = re.findall(r"[^/:\\]+", (call.resource or "").partition("?")[0])
    name = parts[-1] if parts else bare.upper() if bare in _ACRONYMS else bare
    name = _BUNDLED.get(bare, name)
    return str(Call(name, None, arguments)) if arguments else name


def sentence(text: str) -> str:
    """A note as a sentence: with a full stop, and a capital letter unless it begins with a name or call string."""
    first = text.partition(" ")[0]
    start = text[:1].upper() if first.rstrip(",").isalpha() else text[:1]
    return f"{start}{text[1:].rstrip('.')}."


def one_line(text: str) -> str:
    """A text without line breaks and control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def slug(*parts: str) -> str:
    """A readable name of lower-case letters, digits and dashes that ends in a hash of the full parts.

    It is safe as a file name and as an element id on any system.
    """
    digest = sha256("".join(f"{len(part)}:{part}" for part in parts).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    ascii_ = (unicodedata.normalize("NFKD", part).encode("ascii", "ignore").decode().lower() for part in parts)
    words = [re.sub(r"[^a-z0-9]+", "-", part).strip("-")[:48].strip("-") for part in ascii_]
    return "-".join([*filter(None, words), digest])
