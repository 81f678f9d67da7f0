"""The gate: rules on the behaviour of a ranker, from a YAML file, checked against an audit or a comparison.

edited/typos: at least -0.4
axiom/TFC1: surely at least 0.9
bias/car-brand: range at most 2 deltas
drift: at most 0.1 where significant
drift edited/*: at most 0.3
effectiveness: nDCG@10 drop at most 0.01

A key is a study or a shell pattern over studies, `drift` with or without a pattern, or `effectiveness`; its value is
a rule or a list of rules. The estimate is checked, with `surely` the far end of its 95% interval.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal
from xml.etree import ElementTree

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, RootModel, ValidationError, model_validator

from whyrank.core import BadInput, WhyrankError, suggestion
from whyrank.data import read_mapping
from whyrank.evaluation import measure_of
from whyrank.report.audit import Audit
from whyrank.report.comparison import EFFECTIVENESS, Comparison
from whyrank.report.tables import escape_markdown
from whyrank.report.views import mean_with_interval
from whyrank.report.words import MINUS
from whyrank.studies import DELTAS, Finding

DRIFT = "drift"
FIGURES = ("score", "share", "range")
_RULE = re.compile(
    r"(?P<surely>surely +)?(?:(?P<figure>\S+) +)?(?P<drop>drop +)?(?P<side>at (?:least|most)) +"
    r"(?P<limit>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?P<percent> *%)?(?P<deltas> +deltas?)?"
    r"(?P<significant> +where +significant)?"
)
_REMEDY = "write lines such as 'edited/typos: at least -0.4' or 'drift: at most 0.1 where significant'"
_UNMEASURED = "`whyrank audit --out` measures rankers where the collection has judgements and a run to re-rank"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Rule(BaseModel):
    """One rule, such as `edited/typos: at least -0.4`: what is limited, on which side, and how far."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    key: str
    text: str
    side: Literal["at least", "at most"]
    limit: FiniteFloat
    figure: str = ""
    surely: bool = False
    drop: bool = False
    deltas: bool = False
    significant: bool = False

    @classmethod
    def of(cls, key: str, text: str) -> Rule:
        """The rule that a line of the file says."""
        found = _RULE.fullmatch(" ".join(text.split()))
        if found is None:
            raise ValueError(f"{text!r} is no rule such as 'at least -0.4' or 'range at most 2 deltas'")
        flags = {name: found[name] is not None for name in ("surely", "drop", "deltas", "significant")}
        limit = float(found["limit"]) / (100 if found["percent"] else 1)
        figure, side = found["figure"] or "", found["side"]
        return cls.model_validate(flags | {"key": key, "text": text, "side": side, "limit": limit, "figure": figure})

    @property
    def kind(self) -> str:
        """`drift`, `effectiveness`, or `study`."""
        first = self.key.partition(" ")[0]
        return first if first in (DRIFT, EFFECTIVENESS) else "study"

    @property
    def pattern(self) -> str:
        """What the studies of the rule are called: a name or a shell pattern."""
        return self.key if self.kind == "study" else self.key.partition(" ")[2].strip() or "*"

    @model_validator(mode="after")
    def check(self) -> Rule:
        """Raise an error for parts that do not go together."""
        effective, drifting = self.kind == EFFECTIVENESS, self.kind == DRIFT
        known = self.figure in ("", *FIGURES) or effective
        _refuse(
            f"{self.text!r}",
            (effective and (not self.figure or self.deltas), "name a measure: 'nDCG@10 drop at most 0.01'"),
            (self.drop and not effective, "'drop' is for effectiveness"),
            (self.drop and self.side == "at least", "a drop is limited by 'at most'"),
            (drifting and (bool(self.figure) or self.side == "at least"), "drift is limited by 'at most'"),
            (self.significant and not drifting, "'where significant' is for drift"),
            (not known, f"{self.figure!r} is no figure of a study; known: {', '.join(FIGURES)}"),
        )
        if effective:
            measure_of(self.figure)
        return self

    def holds(self, value: float | None, low: float | None, high: float | None) -> bool:
        """Whether an estimate, or with `surely` its whole interval, keeps to the limit; not where it is undefined."""
        end = low if self.side == "at least" else high
        checked = end if self.surely else value
        if checked is None:
            return False
        return checked >= self.limit if self.side == "at least" else checked <= self.limit


class _Rules(RootModel[dict[Annotated[str, Field(min_length=1)], str | Annotated[list[str], Field(min_length=1)]]]):
    """The shape of a file: keys with a text, or with several."""

    model_config = ConfigDict(strict=True)


def read_rules(path: str | os.PathLike[str]) -> list[Rule]:
    """The rules of a YAML file; one clear line for what is wrong, naming file and key."""
    try:
        rules = _Rules.model_validate(read_mapping(path, "rules", _REMEDY, "write them as a list under it")).root
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        raise BadInput(
            path, f"{key}: a rule is a text, or a list of texts, under the name of a study", _REMEDY
        ) from None
    found = []
    for key, texts in rules.items():
        for text in [texts] if isinstance(texts, str) else texts:
            try:
                found.append(Rule.of(key, text))
            except (ValueError, WhyrankError) as error:
                what = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
                raise BadInput(path, f"{key}: {what.removeprefix('Value error, ')}", _REMEDY) from None
    return found


def _refuse(what: str, *problems: tuple[bool, str]) -> None:
    """Raise an error with the first problem that is there."""
    for found, words in problems:
        if found:
            raise ValueError(f"{what}: {words}")


@dataclass(frozen=True)
class Check:
    """Whether one study, drift or measure of one ranker keeps to a rule; `found` says what was found."""

    key: str
    rule: str
    study: str
    ranker: str
    found: str
    passed: bool

    def __str__(self) -> str:
        named = "" if self.study == self.key else f" ({self.study})"
        return f"{'passed' if self.passed else 'FAILED'}  {self.key}: {self.rule}{named}: {self.ranker} {self.found}"


@dataclass(frozen=True)
class Gate:
    """The checks of all rules, those that fail first."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether all rules hold."""
        return all(check.passed for check in self.checks)

    @property
    def lines(self) -> list[str]:
        """A line for every check that fails, then one for every rule that holds."""
        failed = [check for check in self.checks if not check.passed]
        broken, held = {(check.key, check.rule) for check in failed}, dict[tuple[str, str], list[Check]]()
        for check in self.checks:
            if (check.key, check.rule) not in broken:
                held.setdefault((check.key, check.rule), []).append(check)
        more = [
            str(some[0]) if len(some) == 1 else f"passed  {key}: {rule}: all {len(some)}"
            for (key, rule), some in held.items()
        ]
        return [*map(str, failed), *more]

    @property
    def summary(self) -> str:
        """How many checks passed and failed."""
        failed = sum(not check.passed for check in self.checks)
        return f"{failed} of {len(self.checks)} checks failed" if failed else f"all {len(self.checks)} checks passed"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"passed": self.passed, "checks": [asdict(check) for check in self.checks]}

    def to_markdown(self) -> str:
        """A table, the failing checks first."""
        head = ["", "rule", "study", "ranker", "found"]
        body = []
        for check in self.checks:
            cells = (f"{check.key}: {check.rule}", check.study, check.ranker, check.found)
            body.append(["passed" if check.passed else "**failed**", *map(escape_markdown, cells)])
        lines = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *body)]
        return "\n".join([f"**{self.summary}**", "", *lines, ""])

    def to_junit(self) -> str:
        """JUnit XML: a test case for each check."""
        failed = sum(not check.passed for check in self.checks)
        counts = {"tests": str(len(self.checks)), "failures": str(failed), "errors": "0", "skipped": "0"}
        root = ElementTree.Element("testsuites", counts)
        suite = ElementTree.SubElement(root, "testsuite", {"name": "whyrank"} | counts)
        for check in self.checks:
            name = f"{check.key}: {check.rule}" + ("" if check.study == check.key else f" [{check.study}]")
            names = {"classname": _xml_text(check.ranker), "name": _xml_text(name), "time": "0"}
            case = ElementTree.SubElement(suite, "testcase", names)
            if not check.passed:
                ElementTree.SubElement(case, "failure", {"message": _xml_text(check.found)}).text = _xml_text(
                    str(check)
                )
        return ElementTree.tostring(root, "unicode", xml_declaration=True) + "\n"


def _xml_text(text: str) -> str:
    """A text without the characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)


def check_rules(
    rules: Sequence[Rule], audit: Audit, comparison: Comparison | None = None, rankers: Sequence[str] = (),
    source: str | os.PathLike[str] = "rules",
) -> Gate:  # fmt: skip
    """Check an audit, and where rules ask for drift or a drop, its comparison with an older one.

    All rankers of the audit are checked unless some are named. A pattern leaves out studies without contrasts; a rule
    that matches nothing is an error; `source` is the file that it names.
    """
    findings = [f for f in audit.findings if f.group is None and f.ranker in (rankers or [f.ranker])]
    checks: list[Check] = []
    for rule in rules:
        if comparison is None and (rule.drop or rule.kind == DRIFT):
            what = f"{rule.key}: {rule.text!r} needs two audits"
            raise BadInput(source, what, "name the older one first, then the new one")
        try:
            if rule.kind == EFFECTIVENESS:
                found = list(_effectiveness(rule, audit, comparison, {f.ranker for f in findings}))
                what, known = "was not measured in the audits", {row.measure for row in audit.effectiveness}
            elif comparison is not None and rule.kind == DRIFT:
                found = list(_drift(rule, comparison))
                what, known = "matches no study that was compared", {row.study for row in comparison.studies}
            else:
                found = [
                    _study(rule, f) for f in findings if f.study == rule.key or (f.n and _matches(rule.key, f.study))
                ]
                what, known = "matches no study of the audit", {finding.study for finding in findings}
        except ValueError as error:
            raise BadInput(source, f"{rule.key}: {error}") from None
        if not found:
            wanted = rule.figure if rule.kind == EFFECTIVENESS else rule.pattern
            remedy = suggestion(wanted, sorted(known)) if known else _UNMEASURED
            raise BadInput(source, f"{rule.key}: {rule.text!r} {what}", remedy)
        checks += found
    return Gate(tuple(sorted(checks, key=lambda check: check.passed)))


def _matches(pattern: str, study: str) -> bool:
    return study == pattern or fnmatchcase(study, pattern)


def _study(rule: Rule, finding: Finding) -> Check:
    biased = finding.range is not None or finding.study.startswith("bias/")
    kind = rule.figure or ("share" if finding.conclusion else "range" if biased else "score")
    _refuse(
        f"{rule.text!r} cannot be checked for {finding.study}",
        (kind == "share" and not finding.conclusion, "only axioms have a share satisfied"),
        (kind == "range" and not biased, "only bias studies have a range"),
        (rule.deltas and kind != "range", "only a range is given in deltas"),
        (rule.surely and kind == "range", "a range has no interval, so leave out 'surely'"),
    )
    value, low, high = {
        "share": (finding.satisfied, finding.satisfied_low, finding.satisfied_high),
        "score": (finding.score, finding.ci_low, finding.ci_high),
        "range": (finding.range_deltas if rule.deltas else finding.range, None, None),
    }[kind]
    unit = " deltas" if rule.deltas else ""
    words = f"has no {kind}{' in' * bool(unit)}{unit}" if value is None else ""
    words = words or f"has a {kind} of {_shown(value, low, high)}{unit}"
    return Check(rule.key, rule.text, finding.study, finding.ranker, words, rule.holds(value, low, high))


def _drift(rule: Rule, comparison: Comparison) -> Iterator[Check]:
    """Every compared study; bias studies where the limit is in deltas, and all others where it is not."""
    for row in comparison.studies:
        if not _matches(rule.pattern, row.study) or (row.unit == DELTAS) is not rule.deltas:
            continue
        value, low, high = row.difference, row.difference_low, row.difference_high
        far = None if low is None or high is None else max(abs(low), abs(high))
        passed = rule.holds(None if value is None else abs(value), None, far)
        words = f"moved by {_shown(value, low, high)}{' deltas' * rule.deltas} from {row.baseline}"
        if rule.significant and not row.significant(comparison.alpha):
            passed, words = True, f"{words}, not significantly"
        yield Check(rule.key, rule.text, row.study, row.ranker, words, passed)
    for study, reason in comparison.uncompared:
        if _matches(rule.pattern, study) and study.startswith("bias/") is rule.deltas:
            words = f"could not be compared with {comparison.first}: {reason}"
            yield Check(rule.key, rule.text, study, comparison.second, words, passed=False)


def _effectiveness(rule: Rule, audit: Audit, comparison: Comparison | None, rankers: set[str]) -> Iterator[Check]:
    measure = str(measure_of(rule.figure))
    for row in comparison.effectiveness if comparison and rule.drop else ():
        if row.unit == measure and row.difference is not None:
            value, low, high = row.difference, row.difference_low, row.difference_high
            words = f"changed by {_shown(value, low, high, 4)} from {row.baseline}"
            passed = rule.holds(-value, None, None if low is None else -low)
            yield Check(rule.key, rule.text, measure, row.ranker, words, passed)
    for each in audit.effectiveness if not rule.drop else ():
        if each.measure == measure and each.run in rankers:
            mean = mean_with_interval(each)
            words = f"has {_shown(*mean, 4)}"
            yield Check(rule.key, rule.text, measure, each.run, words, rule.holds(*mean))


def _shown(value: float | None, low: float | None, high: float | None, decimals: int = 3) -> str:
    """A figure with its interval."""
    figures = [f"{each:.{decimals}f}".replace("-", MINUS) for each in (value, low, high) if each is not None]
    return figures[0] + (f" [{figures[1]}, {figures[2]}]" if len(figures) == 3 else "") if figures else "nothing"
