"""What users take home: tables, the result folder and the one-file report."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.report.arrow import csv_of, encodable, overlap_table
    from whyrank.report.audit import Audit, open_audit, run_plan
    from whyrank.report.bias import dropped_of, is_flat, is_sure, read_bias_results, sure_pairs
    from whyrank.report.folder import (
        ResultWriter,
        check_result,
        read_findings,
        read_scores,
        read_settings,
        read_texts,
    )
    from whyrank.report.grid import scales_of
    from whyrank.report.html import render
    from whyrank.report.overlap_drawing import overlap_svg
    from whyrank.report.overlaps import interval_of, mean_of, overlap_panels, shares_of
    from whyrank.report.spreads import published
    from whyrank.report.sweeps import MARKS, sweeps_of
    from whyrank.report.table_page import write_page
    from whyrank.report.tables import from_csv, to_csv, to_json, to_latex, to_markdown
    from whyrank.report.verdict import Verdict, verdicts

front_door(__name__)
