"""An explanation: what the words of one text give to its score, or those of two texts to the gap between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from textwrap import fill
from typing import Any, Literal

from whyrank.core import printable
from whyrank.explain.words import words_of
from whyrank.scoring import one_line

LINES, WIDTH, BAR = 12, 80, 16
NAMES = "AB"
FAINT = 0.02  # of the strongest share: what is weaker is not shaded
COLOURS = {True: "37, 99, 235", False: "234, 88, 12"}  # of what raises the score or gap, and of what lowers it


@dataclass(frozen=True)
class Part:
    """A word or phrase, and what it contributes to the score, or to score(first text) - score(second text).

    It is the characters from `start` up to `end` of the text `doc`: 0 the first, 1 the second.
    """

    text: str
    doc: int
    start: int
    end: int
    share: float


@dataclass(frozen=True)
class Counterfactual:
    """An edit of one of two texts that turns their order round, verified by scoring.

    Attributes:
        doc: which text is edited, 0 or 1.
        text: the text after the edit.
        removed: the words and phrases that are taken out.
        inserted: the words that are put in front.
        scores: of both texts, with the edit.
        words_changed: how many words are taken out or put in.
        share_changed: the same as a share of the words that the text had.
    """

    doc: int
    text: str
    removed: tuple[Part, ...]
    inserted: tuple[str, ...]
    scores: tuple[float, float]
    words_changed: int
    share_changed: float


@dataclass(frozen=True)
class Explanation:
    """Why a ranker gave a text its score, or two texts their order.

    Attributes:
        ranker: its name.
        query: the query.
        docs: one or two texts.
        scores: theirs.
        method: `exact` from the ranker's own formula, or `occlusion` from scores of texts that lack some words.
        parts: words and phrases with their shares, in the order of the texts.
        rest: what the parts do not account for: parts + rest = score, or gap of two texts.
        calls: distinct texts that were scored.
        fit: R^2 of the shares on changed texts that they were not fitted to; None where exact or not measured.
        counterfactual: the smallest edit found that turns the order of two texts round.
        note: what is worth knowing beside the figures.
    """

    ranker: str
    query: str
    docs: tuple[str, ...]
    scores: tuple[float, ...]
    method: Literal["exact", "occlusion"]
    parts: tuple[Part, ...]
    rest: float
    calls: int
    fit: float | None = None
    counterfactual: Counterfactual | None = None
    note: str = ""

    @property
    def explained(self) -> float:
        """The score of one text, or the gap between two."""
        return self.scores[0] - (self.scores[1] if len(self.scores) == 2 else 0.0)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return asdict(self)

    def to_text(self, top: int | None = None) -> str:
        """For the terminal: the strongest words, what the others give together, and how far it can be trusted."""
        two = len(self.docs) == 2
        strongest = sorted(self.parts, key=lambda part: -abs(part.share))
        shown, others = strongest[: top or LINES], strongest[top or LINES :]
        largest = abs(shown[0].share) if shown else 0.0
        rows = [(part.share, NAMES[part.doc] if two else "", one_line(part.text, 40)) for part in shown]
        rows += [(sum(part.share for part in others), "", f"{len(others):,} weaker ones together")] * bool(others)
        rows += [(self.rest, "", "rest: due to no word")]
        wide = max(len(row[2]) for row in rows)
        lines = [fill(self._headline(), WIDTH), ""]
        for i, (given, doc, text) in enumerate(rows):
            share = given + 0.0  # without the minus of -0.0
            bar = round(BAR * abs(share) / largest) if largest and i < len(shown) else 0
            lines.append(f"{share:>+10.4g} {doc:2}{text:{wide}}  {('+' if share > 0 else '-') * bar}".rstrip())
        total = (
            f"{self.explained:>+10.4g} {'':2}{'the gap between A and B: + is for A, - for B' if two else 'the score'}"
        )
        return printable("\n".join([*lines, total, "", *(fill(line, WIDTH) for line in self._remarks())]))

    def to_html(self) -> str:
        """A fragment for a page or a notebook: the texts with their words shaded by what they contribute."""
        two, largest = len(self.docs) == 2, max((abs(part.share) for part in self.parts), default=0.0)
        texts = []
        for doc, text in enumerate(self.docs):
            name = f"<b>{NAMES[doc]}</b>, score {self.scores[doc]:.4g}: " if two else ""
            texts.append(f'<p dir="auto">{name}<bdi>{"".join(self._shaded(doc, text, largest))}</bdi></p>')
        key = "gap between A and B" if two else "score"
        legend = " ".join(
            f'<span style="{_style(raises, 0.5)}">{"raises" if raises else "lowers"} the {key}</span>'
            for raises in (True, False)
        )
        remarks = "".join(f"<p>{escape(line)}</p>" for line in self._remarks())
        return (
            '<div class="whyrank-explanation" style="max-width:46em;line-height:1.6;overflow-wrap:anywhere">'
            f"<p><b>{escape(self._headline())}</b></p>{''.join(texts)}"
            f"<p>{legend}; rest {self.rest + 0.0:+.4g}</p>{remarks}</div>"
        )

    __str__ = to_text

    def _repr_html_(self) -> str:
        return self.to_html()

    def _headline(self) -> str:
        query, scores = one_line(self.query, 200), [f"{score:.4g}" for score in self.scores]
        if len(scores) == 1:
            return f"{self.ranker} gives the text {scores[0]} for the query: {query}"
        order = "above" if self.explained > 0 else "below" if self.explained < 0 else "level with"
        return f"{self.ranker} puts A ({scores[0]}) {order} B ({scores[1]}) for the query: {query}"

    def _remarks(self) -> Iterator[str]:
        """What there is to say besides the figures, a line each."""
        if self.counterfactual:
            yield self._what_turns(self.counterfactual)
        if self.method == "exact":
            yield "The shares are exact: they follow from the ranker's formula."
        elif changed := self.calls - len(self.docs):
            yield f"The shares come from the scores of {changed:,} changed text{'s' * (changed > 1)}."
        if self.fit is not None:
            said = "well" if self.fit >= 0.8 else "roughly" if self.fit >= 0.5 else "poorly: words act together"
            yield f"On changed texts that they were not fitted to, they predict the score {said} (R²={self.fit:.2f})."
        if self.note:
            yield f"Note: {one_line(self.note, 1000)}."

    def _what_turns(self, edit: Counterfactual) -> str:
        name, other = NAMES[edit.doc], NAMES[1 - edit.doc]
        words = [f"without {', '.join(f'“{one_line(part.text, 60)}”' for part in edit.removed)}"] * bool(edit.removed)
        words += [f"with “{one_line(' '.join(edit.inserted), 60)}” put in front"] * bool(edit.inserted)
        size, before = edit.words_changed, len(words_of(self.docs[edit.doc]))
        new, fixed = edit.scores[edit.doc], edit.scores[1 - edit.doc]
        changed = f"{size} {'word' if size == 1 else 'words'} changed of {before}, {edit.share_changed:.0%}"
        return (
            f"What turns the order round: {name} {' and '.join(words)} ({changed}) scores {new:.4g}, "
            f"{'below' if new < fixed else 'above'} {other} with {fixed:.4g}."
        )

    def _shaded(self, doc: int, text: str, largest: float) -> Iterator[str]:
        at = 0
        for part in self.parts:
            if part.doc == doc and abs(part.share) > FAINT * largest:
                style = _style(part.share > 0, 0.1 + 0.5 * abs(part.share) / largest)
                yield escape(text[at : part.start])
                yield f'<span style="{style}" title="{part.share:+.4g}">{escape(part.text)}</span>'
                at = part.end
        yield escape(text[at:])


def _style(raises: bool, strength: float) -> str:
    """A shade; what lowers is underlined too, for those who see no difference in colour."""
    line = "" if raises else ";text-decoration:underline dotted"
    return f"background:rgba({COLOURS[raises]}, {strength:.2f});border-radius:3px{line}"
