"""Do judgements and runs mention only what is there? And the runs of a folder, read when asked for."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from whyrank.core.errors import BadInput
from whyrank.data.lines import read_lines
from whyrank.data.tallies import Tally
from whyrank.data.trec import Run, read_run

_REMEDY = "add what is missing, or open the collection without strict"


class References:
    """The ids that a collection has; finds those that a file mentions and the collection has not.

    `docs` is None where looking a document up is too dear; documents are then not checked.
    """

    def __init__(self, queries: Container[str], docs: Container[str] | None, strict: bool) -> None:
        """Take the known ids; with `strict` an unknown one is an error."""
        self.queries, self.docs, self.strict = queries, docs, strict

    def check(self, source: str | Path, mentioned: Mapping[str, Mapping[str, object]]) -> list[str]:
        """Notes on unknown ids, counted and with the first few; with `strict` the first is an error."""
        doc_ids = dict.fromkeys(doc_id for by_doc in mentioned.values() for doc_id in by_doc)
        notes = self._unknown(source, "query", "queries", dict.fromkeys(mentioned), self.queries)
        if self.docs is not None:
            notes += self._unknown(source, "document", "documents", doc_ids, self.docs)
        return notes

    def _unknown(
        self, source: str | Path, one: str, many: str, ids: Mapping[str, None], known: Container[str]
    ) -> list[str]:
        tally = Tally(f"{many} that the collection does not have")
        for each in ids:
            if each not in known:
                tally.add(each)
        if tally.count and self.strict:
            what = f"{one} {tally.first[0]!r} is not in the collection ({tally.count:,} such {many} in all)"
            raise BadInput(source, what, _REMEDY, _line(source, one, tally.first[0]))
        return tally.notes(source.name if isinstance(source, Path) else source)


class RunFiles(Mapping[str, Run]):
    """The runs of a folder by file name without `.txt` and `.gz`; each is read and checked when asked for."""

    def __init__(self, folder: Path, references: References, notes: list[str]) -> None:
        """List the run files; what is odd about them goes to `notes` when they are read."""
        self._references, self._notes = references, notes
        self._files = _run_files(folder)
        self._read: dict[str, Run] = {}

    def __len__(self) -> int:
        """Number of runs."""
        return len(self._files)

    def __iter__(self) -> Iterator[str]:
        """Names of the runs, sorted."""
        return iter(self._files)

    def __contains__(self, name: object) -> bool:
        """Whether there is such a run; it is not read."""
        return name in self._files

    def __getitem__(self, name: str) -> Run:
        """Read a run, once."""
        if name not in self._read:
            path = self._files[name]
            run = read_run(path)
            self._notes += self._references.check(path, run)
            self._read[name] = run
        return self._read[name]

    def __repr__(self) -> str:
        """The names of the runs."""
        return f"RunFiles({', '.join(self._files)})"


def _run_files(folder: Path) -> dict[str, Path]:
    # plain files come last, so that they win over a compressed one of the same name
    paths = [*sorted(folder.glob("*.txt.gz")), *sorted(folder.glob("*.txt"))]
    found = {path.name.removesuffix(".gz").removesuffix(".txt"): path for path in paths}
    return dict(sorted(found.items()))


def _line(source: str | Path, one: str, wanted: str) -> int | None:
    """Number of the first line that mentions an id; only for messages, so it reads the file anew."""
    if not isinstance(source, Path):
        return None
    return next((line.number for line in read_lines(source) if _mentions(line.text.split(), one, wanted)), None)


def _mentions(columns: list[str], one: str, wanted: str) -> bool:
    doc_column = 2 if len(columns) >= 4 else 1  # TREC's files have a column between, BEIR's have not
    return columns[0 if one == "query" else doc_column] == wanted
