"""`whyrank explore`: an audit in the browser, with live scores of whatever one types."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from whyrank.cli.audit import AuditCommand
from whyrank.cli.command import argument
from whyrank.cli.console import say
from whyrank.cli.options import open_collection, open_rankers
from whyrank.core import Range, WhyrankError

_OUTSIDE = re.compile(r"\b(?:python|pyterrier|https?):")  # rankers that run code of a file, or send texts away


@dataclass(frozen=True, kw_only=True)
class ExploreCommand:
    """Explore an audit in the browser: its findings and examples, and live scores of whatever you type.

    Without a result folder it opens the bundled sample with the bundled rankers. Rankers of a result folder that run
    code of a file or send texts to a service are opened only where --ranker names them.

    Attributes:
        folder: a result folder of `whyrank audit --out`.
        ranker: rankers to score with, instead of those of the audit.
        collection: where queries and documents are picked from, instead of the audit's collection.
        table: a term table to look terms up in; repeat it for several side by side.
        port: where the explorer listens; 0 takes any port that is free.
        host: the address to listen at; beyond this machine, the address that is printed has a token.
        browser: open a browser.
    """

    folder: str | None = argument("FOLDER", None)
    ranker: tuple[str, ...] = ()
    collection: str | None = None
    table: tuple[str, ...] = ()
    port: Annotated[int, Range(0, 65535)] = 8765
    host: str = "127.0.0.1"
    browser: bool = True

    def run(self) -> None:
        """Open all that is needed, and serve it."""
        from whyrank.explorer import Explorer, bind, serve
        from whyrank.report import open_audit
        from whyrank.tables import open_table

        audit = None if self.folder is None else open_audit(self.folder)
        settings: Mapping[str, Any] = {} if audit is None else audit.settings
        with bind(self.host, self.port) as made:
            # torch takes half of the cores: two short texts need no more, and other requests get the rest
            os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // 2)))
            tables = {name: open_table(name, check=True) for name in self.table}
            if audit is not None and audit.table is not None:
                tables.setdefault(str(settings.get("table")), audit.table)
            collection = open_collection(self.collection or settings.get("collection") or "sample")
            analyzer = str(settings.get("analyzer") or "lucene")
            specs = self.ranker or self._specs(settings)
            rankers = open_rankers(
                specs, collection, analyzer, settings.get("stats"), settings.get("precision"), typed=True
            )
            found = Explorer(rankers, collection, audit, tables, analyzer)
            serve(found, made, self.host, say, self.browser)

    def _specs(self, settings: Mapping[str, Any]) -> Sequence[str]:
        """The rankers of the audit, or the bundled ones without an audit."""
        if not settings:
            return AuditCommand().with_defaults()[0].ranker
        named = list(settings.get("ranker") or settings.get("rankers", ()))
        for spec in (spec for spec in named if _OUTSIDE.search(spec)):
            say(f"note: {spec} runs code or sends texts to a service: name it with --ranker to score with it")
        inside = [spec for spec in named if not _OUTSIDE.search(spec)]
        if not inside:
            raise WhyrankError(f"{self.folder}: no ranker of this audit can be opened; name some with --ranker")
        return inside
