"""What users take home: tables, the result folder and the one-file report."""

from whyrank.report.folder import ResultWriter, read_findings, read_scores, read_settings, read_texts
from whyrank.report.html import render
from whyrank.report.tables import from_csv, to_csv, to_json, to_latex, to_markdown
from whyrank.report.verdicts import Verdict, verdicts

__all__ = [
    "ResultWriter",
    "Verdict",
    "from_csv",
    "read_findings",
    "read_scores",
    "read_settings",
    "read_texts",
    "render",
    "to_csv",
    "to_json",
    "to_latex",
    "to_markdown",
    "verdicts",
]
