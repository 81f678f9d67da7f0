"""EM against NLTK, against a plain loop, and by hand."""

from __future__ import annotations

import math
import tempfile
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate import AlignedSent, IBMModel1

from full_disks import small_files
from whyrank.core import BadInput, WhyrankError
from whyrank.data import open_collection
from whyrank.learners.em import bitext_of, learn_em, links, make_bitext
from whyrank.learners.em.estimator import Estimator, training_pairs
from whyrank.learners.em.learner import memory_limit

SIDE = st.lists(st.sampled_from("abcde"), min_size=1, max_size=5)
BITEXTS = st.lists(
    st.tuples(SIDE, st.lists(st.sampled_from("vwxyz"), min_size=1, max_size=4)), min_size=1, max_size=8
)


def bitext(pairs, **options):
    return bitext_of([(" ".join(source), " ".join(target)) for source, target in pairs], "whitespace", **options)


def everything(pairs, **options):
    return learn_em(bitext(pairs), threshold=0.0, **options)


@settings(max_examples=40)
@given(BITEXTS, st.integers(1, 6))
def test_it_is_nltk(pairs, iterations):
    # NLTK counts a target word that occurs twice in a pair once, so that its pairs have each word once here
    pairs = [(source, list(dict.fromkeys(target))) for source, target in pairs]
    model = IBMModel1([AlignedSent(target, source) for source, target in pairs], iterations)
    table = everything(pairs, iterations=iterations).table
    for target in table.query_terms:
        for source in table.doc_terms:
            if any(source in s and target in t for s, t in pairs):
                assert table.weight(target, source) == pytest.approx(
                    model.translation_table[target][source], abs=1e-6
                )


def plain_em(pairs, iterations, null):
    """The formulas as loops over all tokens; gives the table and the perplexities before each iteration and at the end."""
    table = defaultdict(lambda: 1 / len({word for _, target in pairs for word in target}))
    perplexities = []
    for _ in range(iterations + 1):
        counts, totals, loss, tokens = defaultdict(float), defaultdict(float), 0.0, 0
        for source, target in pairs:
            sources = [None, *source] if null else source
            for q in target:
                s = sum(table[q, d] for d in sources)
                loss, tokens = loss - math.log(s / len(sources)), tokens + 1
                for d in sources:
                    counts[q, d] += table[q, d] / s
                    totals[d] += table[q, d] / s
        perplexities.append(math.exp(loss / tokens))
        before, table = table, {pair: count / totals[pair[1]] for pair, count in counts.items()}
    return before, perplexities


@given(BITEXTS, st.integers(1, 6), st.booleans())
def test_it_is_the_formula(pairs, iterations, null):
    expected, perplexities = plain_em(pairs, iterations, null)
    table, found = everything(pairs, iterations=iterations, null=null, check=True)
    assert found == pytest.approx(perplexities, rel=1e-5)
    for (q, d), weight in expected.items():
        if d is not None:
            assert table.weight(q, d) == pytest.approx(weight, abs=1e-6)
    assert len(table) <= len({(q, d) for s, t in pairs for q in t for d in s})
    assert table.facts["float64_difference"] < 1e-6


def random_pairs(n=400, seed=0):
    rng = np.random.default_rng(seed)

    def side(mean, letter):
        return [f"{letter}{word}" for word in np.minimum(rng.zipf(1.5, rng.poisson(mean) + 1), 60)]

    return [(side(8, "d"), side(3, "q")) for _ in range(n)]


@pytest.fixture
def small_shards(monkeypatch):
    """Shards of a hundred links, so that a small bitext has many."""
    monkeypatch.setattr(links, "SMALLEST", 100)
    monkeypatch.setattr(links, "LARGEST", 100)


def same(one, other):
    assert one.table.digest == other.table.digest
    assert one.perplexities == other.perplexities
    assert one.table.facts.get("held_out_perplexities") == other.table.facts.get("held_out_perplexities")


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("held_out", [0.0, 0.2])
def test_threads_and_memory_change_no_bit(held_out):
    made = bitext(random_pairs())
    plain = learn_em(made, threshold=0.0, held_out=held_out)
    assert len(links.plan_shards(made, np.ones(len(made), np.bool_)).links) > 20
    for options in ({"threads": 2}, {"memory": 0}, {"memory": 20_000, "threads": 3}):
        same(plain, learn_em(made, threshold=0.0, held_out=held_out, **options))


@pytest.mark.usefixtures("small_shards")
def test_resuming_changes_no_bit(tmp_path):
    made, path = bitext(random_pairs()), tmp_path / "state"
    whole = learn_em(made, iterations=6, threshold=0.0, held_out=0.1)
    learn_em(made, iterations=2, threshold=0.0, held_out=0.1, checkpoint=path)
    same(whole, learn_em(made, iterations=6, threshold=0.0, held_out=0.1, checkpoint=path, memory=0))
    same(whole, learn_em(made, iterations=6, threshold=0.0, held_out=0.1, checkpoint=path))


def test_a_kill_in_the_middle_loses_one_iteration(tmp_path, monkeypatch):
    made, path, whole_pass = bitext(random_pairs(60)), tmp_path / "state", Estimator._pass
    calls = []

    def stopping(self, progress, update):
        calls.append(update)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return whole_pass(self, progress, update)

    monkeypatch.setattr(Estimator, "_pass", stopping)
    with pytest.raises(KeyboardInterrupt):
        learn_em(made, checkpoint=path)
    again = learn_em(made, checkpoint=path)
    assert calls == [True] * 6 + [False]
    same(learn_em(made), again)


def test_a_checkpoint_of_something_else_is_one_line(tmp_path):
    path = tmp_path / "state"
    learn_em(bitext(random_pairs(20)), checkpoint=path)
    content = path.read_bytes()
    with pytest.raises(BadInput, match="another bitext"):
        learn_em(bitext(random_pairs(20, seed=1)), checkpoint=path)
    with pytest.raises(BadInput, match="other settings"):
        learn_em(bitext(random_pairs(20)), null=False, checkpoint=path)
    for broken, said in ((content[:-1], "is damaged"), (b"PAR1" + content, "is damaged"), (b"", "no checkpoint")):
        path.write_bytes(broken)
        with pytest.raises(BadInput, match=said):
            learn_em(bitext(random_pairs(20)), checkpoint=path)


def test_stopping_when_the_held_out_perplexity_rises(tmp_path):
    made, options = bitext(random_pairs(80)), {"iterations": 30, "held_out": 0.3, "stop": 0.0}
    early = learn_em(made, **options)
    held = early.table.facts["held_out_perplexities"]
    best = early.table.facts["iterations"]
    assert held[-1] > held[-2] == held[best] == min(held)
    assert len(held) - 1 == best + 1 < 30
    best_one = learn_em(made, iterations=best, held_out=0.3)
    assert best_one.table.facts["held_out_perplexities"] == held[:-1]
    assert early.table.digest == best_one.table.digest
    learn_em(made, iterations=1, held_out=0.3, checkpoint=tmp_path / "state")
    for _ in range(2):  # on the way, and from its end
        same(early, learn_em(made, **options, checkpoint=tmp_path / "state", memory=0))


def test_fewer_iterations_than_the_checkpoint_has_are_one_line(tmp_path):
    made, path = bitext(random_pairs(20)), tmp_path / "state"
    learn_em(made, iterations=4, checkpoint=path)
    with pytest.raises(BadInput, match="iteration 4, which is beyond 3"):
        learn_em(made, iterations=3, checkpoint=path)
    same(learn_em(made, iterations=4), learn_em(made, iterations=4, checkpoint=path))


@pytest.mark.parametrize("where", [{"memory": 0}, {"checkpoint": "state"}])
def test_a_full_disk_is_one_line(tmp_path, monkeypatch, where):
    made = bitext(random_pairs(200))
    learn_em(made)  # compiled code is kept in files too
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    said = "a temporary file .*give more memory" if "memory" in where else "^state: cannot be"
    with pytest.raises(BadInput, match=said), small_files(500):
        learn_em(made, **where)


def test_held_out_queries_are_not_learned_from():
    pairs = random_pairs(200)
    made = bitext(pairs)
    learned = learn_em(made, held_out=0.25, threshold=0.0, seed=3)
    facts = learned.table.facts
    assert facts["pairs"] == 150
    held = [p for i, p in enumerate(pairs) if i not in _trained(made, 0.25, 3)]
    trained = [pairs[i] for i in sorted(_trained(made, 0.25, 3))]
    expected, perplexities = plain_em(trained, 5, True)
    # the uniform start has the vocabulary of all pairs, which changes the first perplexity alone
    assert learned.perplexities[1:] == pytest.approx(perplexities[1:], rel=1e-5)
    loss, tokens, unseen = 0.0, 0, 0
    for source, target in held:
        for q in target:
            s = sum(expected.get((q, d), 0.0) for d in [None, *source])
            loss, tokens, unseen = (
                (loss - math.log(s / (len(source) + 1)), tokens + 1, unseen) if s else (loss, tokens, unseen + 1)
            )
    assert facts["held_out_perplexities"][-1] == pytest.approx(math.exp(loss / tokens), rel=1e-4)
    assert facts["held_out_tokens_unseen"] == unseen


def _trained(made, share, seed):
    return set(np.flatnonzero(training_pairs(made, share, seed)).tolist())


def test_pruning():
    made = bitext(random_pairs())
    whole = learn_em(made, threshold=0.0, table_terms=None).table
    cut = learn_em(made, threshold=0.05, table_terms=10).table
    queries, docs = list(made.target_terms[:10]), list(made.source_terms[:10])  # the most frequent come first
    expected = {
        (e.query_term, e.document_term, e.weight)
        for e in whole.rows()
        if e.weight >= 0.05 and e.query_term in queries and e.document_term in docs
    }
    assert {tuple(entry) for entry in cut.rows()} == expected
    assert list(cut.doc_terms) == docs
    assert cut.counts.tolist() == made.source_counts[:10].tolist()


@pytest.mark.parametrize(("given", "size"), [("4K", 4096), ("1.5 G", 3 << 29), ("2GiB", 2 << 30), (7, 7)])
def test_sizes_of_memory(given, size):
    assert memory_limit(given) == size


@pytest.mark.parametrize(("given", "key"), [
    ({"iterations": 0}, "iterations"), ({"threads": 0}, "threads"), ({"memory": "much"}, "memory"),
    ({"held_out": 1.5}, "held_out"), ({"null": 1}, "null"), ({"held_out": 1.0}, "no query left"), ({"held_out": 0.1}, "holds out none of 2 queries"),
])  # fmt: skip
def test_refusals(given, key):
    with pytest.raises(WhyrankError, match=key):
        learn_em(bitext([("a", "x"), ("b", "y")]), **given)


def test_cranfield(data_folder):
    made = make_bitext(open_collection(str(data_folder / "cranfield")), "lucene")
    assert made.links > 100_000
    plain = learn_em(made, held_out=0.1, check=True)
    assert all(after < before for before, after in pairwise(plain.perplexities))
    assert np.isclose(plain.perplexities[0], len(made.target_terms), rtol=1e-9)
    other = learn_em(made, held_out=0.1, threads=2, memory=0)
    assert other.table.digest == plain.table.digest
    assert other.perplexities == plain.perplexities
