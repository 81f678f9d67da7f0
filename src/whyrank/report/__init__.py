"""What users take home: tables, the result folder and the one-file report."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.report.arrow import csv_of, encodable, plain, rows_table, values_table
    from whyrank.report.audit import Audit, open_audit, run_plan
    from whyrank.report.card import behaviour_card
    from whyrank.report.charts import overlap_svg, write_figures
    from whyrank.report.comparison import Change, Comparison, compare, compare_audits
    from whyrank.report.folder import (
        ResultWriter,
        check_result,
        read_bias_results,
        read_findings,
        read_scores,
        read_settings,
        read_texts,
    )
    from whyrank.report.gate import Gate, Rule, check_rules, read_rules
    from whyrank.report.html import render
    from whyrank.report.sentences import Headline, headlines
    from whyrank.report.table_page import write_page
    from whyrank.report.tables import to_json, to_latex, to_markdown
    from whyrank.report.views import (
        MARKS,
        by_measure,
        dropped_of,
        family_deviation,
        interval_of,
        is_flat,
        mean_of,
        scales_of,
        shares_of,
        significant_pairs,
        sweeps_of,
    )

front_door(__name__)
