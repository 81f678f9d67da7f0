"""Records, protocols, the registry and the errors that every other room builds on."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.core.callstrings import Call, format_value, parse_call, split_name
    from whyrank.core.checksums import (
        EMPTY,
        KEY,
        LISTING,
        check_listed,
        check_seal,
        damage_error,
        list_checksums,
        read_sealed_json,
        seal,
        seal_before_footer,
        sealed_file,
        sealed_json,
        sealed_text,
    )
    from whyrank.core.clustered import (
        ALPHA,
        EXACT_CLUSTERS,
        TIE,
        Interval,
        SharedDocuments,
        cluster_sums,
        mean_interval,
        sign_flip_p,
        stratified_interval,
    )
    from whyrank.core.errors import (
        BadInput,
        MissingExtra,
        UnknownName,
        WhyrankError,
        nearest,
        suggestion,
        tolerance_of,
    )
    from whyrank.core.files import (
        LOCK,
        cache_folder,
        check_writable,
        exclusive,
        file_digest,
        hidden,
        hidden_prefix,
        make_locked,
        near_folder,
        replacing,
        sweep,
        temporary_room,
        write_text,
    )
    from whyrank.core.lines import (
        MOST_BYTES,
        Line,
        Record,
        check_size,
        every_line,
        find_file,
        json_records,
        lines_of,
        needed_file,
        open_bytes,
        read_json,
        read_lines,
        read_text,
        write_lines,
    )
    from whyrank.core.parallel import (
        Executor,
        Processes,
        Ray,
        Serial,
        current_executor,
        executor,
        executors,
        in_worker,
        worker_number,
        working_with,
    )
    from whyrank.core.parameters import (
        LARGEST,
        Checked,
        Natural,
        NonNegative,
        Positive,
        Range,
        Share,
        Whole,
        Within,
        check,
        check_arguments,
        hints_of,
        in_words,
    )
    from whyrank.core.plugins import load_plugins
    from whyrank.core.progress import Progress, apart_from_results, printable, silent, track
    from whyrank.core.protocols import Answered, Codes, Flags, Floats, Ints, Ranker, Study, ask, name_of
    from whyrank.core.registry import Registry, call_of
    from whyrank.core.seeds import generator, seed_for
    from whyrank.core.sqlite import Layout, Names, TextStore, checksum, digest, is_read_only, writing
    from whyrank.core.statistics import adjust, median, paired_t_p, share_p, sign_p, wilcoxon_p
    from whyrank.core.timing import Clock, clocked, timed

front_door(__name__)
