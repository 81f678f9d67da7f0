"""Synonym files as Lucene's own parser reads them; `make lucene`, or a folder of its jars in WHYRANK_LUCENE."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from base64 import b64decode
from itertools import product
from pathlib import Path

import pytest
from term_table_samples import ODD
from test_term_table_exports import engine, sets

from whyrank.data import open_collection
from whyrank.learners.em import learn_em, make_bitext
from whyrank.tables import BUNDLED, TermTable, collection_words, count_words, open_table, write_synonyms
from whyrank.text import analyzers

READER = Path(__file__).parent / "ReadSynonyms.java"
JARS = ("lucene-core-*.jar", "lucene-anal*-common-*.jar")
VARIANTS = ({}, {"equivalent": True}, {"replace": True})


@pytest.fixture(scope="module")
def lucene():
    """Reads files: for each the inputs, and what an engine looks for when a query has one."""
    folder = Path(os.environ.get("WHYRANK_LUCENE", "/usr/share/java"))
    jars = [str(sorted(folder.glob(name))[-1]) for name in JARS if any(folder.glob(name))]
    if shutil.which("java") is None or len(jars) < len(JARS):
        pytest.skip(f"needs java and {' and '.join(JARS)} in {folder}: `make lucene`, or a folder in WHYRANK_LUCENE")

    def read(analyzer: str, *files: Path) -> list[dict[str, set[str]]]:
        command = ["java", "-cp", os.pathsep.join(jars), str(READER), analyzer, *map(str, files)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        rules: dict[str, dict[str, set[str]]] = {str(file): {} for file in files}
        for line in done.stdout.splitlines():
            file, *texts, stays = line.split("\t")
            given, other = (b64decode(text).decode() for text in texts)
            rules[file].setdefault(given, {given} if stays == "true" else set()).add(other)
        return list(rules.values())

    return read


def uncommented(path):
    """The file with the rules that a person should look at."""
    whole = path.with_suffix(".whole")
    whole.write_text(re.sub("^# (?:name|opposite): ", "", path.read_text("utf-8"), flags=re.M), encoding="utf-8")
    return whole


def test_hostile_terms(lucene, tmp_path):
    pairs = list(product((*ODD, "Ｎamen", "# name: a", "a#", "\\,", "a=>", "=>\\", "ⅷ"), repeat=2))
    table, files = TermTable.from_triples(*zip(*pairs, strict=True), [0.5] * len(pairs)), []
    for i, options in enumerate(VARIANTS):
        write_synonyms(table, tmp_path / str(i), top=500, **options)
        files.append(uncommented(tmp_path / str(i)))
    expected = [sets(engine(file)) for file in files]
    assert lucene("keyword", *files) == expected
    assert all(len(rules) > 35 for rules in expected)


@pytest.mark.parametrize(
    "collection", ["sample", *(pytest.param(n, marks=pytest.mark.slow) for n in ("cranfield", "vaswani"))]
)
def test_every_word_is_one_of_the_collection(lucene, tmp_path, request, collection):
    """Three tables, each as every kind of file, with and without the rules in comments."""
    path = collection if collection == "sample" else str(request.getfixturevalue("data_folder") / collection)
    texts = open_collection(path)
    em, _ = learn_em(make_bitext(texts, "lucene"))
    spelled = {word.lower() for word in count_words([*texts.docs.values(), *texts.queries.values()])}
    files = []
    words = collection_words(texts, analyzers.create("lucene"))
    for name, table in {**{name: open_table(name) for name in BUNDLED}, "em": em}.items():
        for i, options in enumerate(VARIANTS):
            file = tmp_path / f"{name}-{i}.txt"
            written = write_synonyms(table, file, top=5, words=words, **options)
            assert written.lines > 100
            files += [file, uncommented(file)]
    read = lucene("standard", *files)
    assert all(read)
    found = {word for rules in read for given, others in rules.items() for word in (given, *others)}
    assert found <= spelled
