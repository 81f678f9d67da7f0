"""Published layouts: each form of each data set, written by hand here."""

from __future__ import annotations

import gzip
import hashlib
import json

import pytest

from whyrank.core import BadInput, WhyrankError
from whyrank.data.pairs import open_pairs
from whyrank.data.pairs.sets import detect


def write(folder, files):
    """Write files by name; a name with .gz is compressed."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
    return folder


def json_lines(*objects):
    return "".join(json.dumps(each) + "\n" for each in objects)


def rows(found):
    return [(pair.id, dict(pair.texts)) for pair in found]


def open_both(layout, folder, options=""):
    """Open by name, and see that the folder alone says the same."""
    found = open_pairs(f"{layout}:{folder}{options}")
    assert detect(folder) == layout
    assert open_pairs(f"{folder}{options}") == found
    assert found.source == f"{layout}:{folder}{options}"
    return found


MSRP = [
    '1\t10\t11\tHe said "no.\tHe said no.',
    "0\t12\t13\tA dog ran.\tA cat sat.",
    "1\t14\t15\tIt rains.\tRain falls.",
]
MSRP_ROWS = [("10-11", {"a": 'He said "no.', "b": "He said no."}), ("14-15", {"a": "It rains.", "b": "Rain falls."})]


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String", "msr_paraphrase_{}.txt"),
        ("label\tid1\tid2\tsentence1\tsentence2", "{}.tsv.gz"),
    ],
)
def test_msrp(tmp_path, header, name):
    write(tmp_path, {name.format("train"): "\r\n".join([header, *MSRP[:2], ""])})
    write(tmp_path, {name.format("test"): "\r\n".join([header, *MSRP[2:], ""])})
    assert rows(open_both("msrp", tmp_path)) == MSRP_ROWS
    assert rows(open_both("msrp", tmp_path, "(split=test)")) == MSRP_ROWS[1:]
    assert rows(open_pairs(f"msrp:{tmp_path / name.format('train')}")) == MSRP_ROWS[:1]


def test_wnc_full(tmp_path):
    line = "7\tthe bad m ##an\tthe m ##an\tThe bad man\tThe man\tDET ADJ\tdet amod\n8\ta\tb\tA B\tA\n"
    expected = [("7", {"biased": "The bad man", "neutral": "The man"}), ("8", {"biased": "A B", "neutral": "A"})]
    for file in ("one/biased.full", "two/WNC/biased.full", "three/bias_data/WNC/biased.full"):
        write(tmp_path, {file: line})
        assert rows(open_both("wnc", tmp_path / file.partition("/")[0])) == expected
        assert rows(open_pairs(f"wnc:{tmp_path / file}", "neutrality")) == expected


def test_wnc_table(tmp_path):
    write(tmp_path, {"train.tsv": 'biased\tneutral\nso "good\tfine\n', "test.tsv": "biased\tneutral\nx\tx\n"})
    expected = [("train-0", {"biased": 'so "good', "neutral": "fine"}), ("test-0", {"biased": "x", "neutral": "x"})]
    assert rows(open_both("wnc", tmp_path)) == expected
    assert rows(open_both("wnc", tmp_path, "(split=test)")) == expected[1:]


SENTENCES = [("I has a cat .", "I has a cat ."), ("", "")]
CORRECTED = [["I have a cat .", "I have one cat .", "My cat .", "A cat ."], ["", "b", "", "d"]]


def jfleg_lines(folder):
    for base in ("dev/dev", "test/test"):
        write(folder, {f"{base}.src": "".join(f"{source}\n" for source, _ in SENTENCES)})
        write(folder, {f"{base}.spellchecked.src": "".join(f"{checked}\n" for _, checked in SENTENCES)})
        write(folder, {f"{base}.ref{i}": "".join(f"{refs[i]}\n" for refs in CORRECTED) for i in range(4)})
    return folder


def jfleg_json(folder):
    for split in ("dev", "test"):
        objects = [
            {"id": f"{split}-{n}", "src": source, "spellchecked": checked, "refs": refs}
            for n, ((source, checked), refs) in enumerate(zip(SENTENCES, CORRECTED, strict=True))
        ]
        write(folder, {f"{split}.jsonl.gz": json_lines(*objects)})
    return folder


@pytest.mark.parametrize("make", [jfleg_lines, jfleg_json])
@pytest.mark.parametrize("end", ["", "\n"])
def test_jfleg(tmp_path, make, end):
    found = open_both("jfleg", make(tmp_path), "(keep_newline=True)" if end else "")
    expected = [
        (f"{split}-{n}-{i}", {"fluent": ref + end, "source": source + end, "spellchecked": checked + end})
        for split in ("dev", "test")
        for n, ((source, checked), refs) in enumerate(zip(SENTENCES, CORRECTED, strict=True))
        for i, ref in enumerate(refs)
    ]
    assert rows(found) == expected
    assert rows(open_pairs(f"jfleg:{tmp_path}(split=test)", "fluency"))[0][0] == "test-0-0"
    if make is jfleg_json:
        assert len(open_pairs(f"jfleg:{tmp_path / 'dev.jsonl.gz'}")) == 8


def test_jfleg_files_must_be_aligned(tmp_path):
    jfleg_lines(tmp_path)
    write(tmp_path, {"test/test.ref2": "x\n\n\n\n"})
    assert len(open_pairs(str(tmp_path))) == 16  # blank lines at the end do no harm
    write(tmp_path, {"test/test.ref2": "x\n\nz\n"})
    with pytest.raises(BadInput, match=r"test\.ref2:3: this line has no partner in test\.src"):
        open_pairs(str(tmp_path))
    (tmp_path / "test/test.ref2").unlink()
    with pytest.raises(BadInput, match=r"the folder has no test/test\.ref2"):
        open_pairs(str(tmp_path))


def test_turkcorpus(tmp_path):
    lines, objects = tmp_path / "lines", tmp_path / "objects"
    expected = []
    for split in ("test", "tune"):
        norm, refs = f"{split} -lrb- old -rrb- ", [f"{split} -LRB- {i} -RRB-" for i in range(8)]
        write(lines, {f"{split}.8turkers.tok.norm": norm + "\n", f"{split}.8turkers.tok.simp": "unused\n"})
        write(lines, {f"{split}.8turkers.tok.turk.{i}": ref + "\n" for i, ref in enumerate(refs)})
        write(objects, {f"{split}.jsonl": json_lines({"id": f"{split}-0", "norm": norm, "simp": "u", "refs": refs})})
        expected += [
            (f"{split}-0-{i}", {"simple": f"{split} ( {i} )", "source": f"{split} ( old )"}) for i in range(8)
        ]
    assert rows(open_both("turkcorpus", lines)) == rows(open_both("turkcorpus", objects)) == expected
    assert rows(open_both("turkcorpus", lines, "(split=tune)")) == expected[8:]
    assert rows(open_pairs(f"turkcorpus:{objects / 'test.jsonl'}", "simplicity")) == expected[:8]


@pytest.mark.parametrize("below", ["", "dataset/"])
def test_asset(tmp_path, below):
    for split in ("valid", "test"):
        write(tmp_path, {f"{below}asset.{split}.orig": f"{split} one\n{split} two\n"})
        write(tmp_path, {f"{below}asset.{split}.simp.{i}": f"a{i}\nb{i}\n" for i in range(10)})
    found = rows(open_both("asset", tmp_path))
    assert len(found) == 40
    assert found[0] == ("valid-0-0", {"simple": "a0", "source": "valid one"})
    assert found[-1] == ("test-1-9", {"simple": "b9", "source": "test two"})


GENRES = ("Entertainment_Music", "Family_Relationships")


def gyafc(folder):
    for genre in GENRES:
        for split in ("tune", "test"):
            for style, other in (("formal", "informal"), ("informal", "formal")):
                base = f"{genre}/{split}/{style}"
                write(folder, {base: f"{genre} {split} {style} 0\n{genre} {split} {style} 1\n"})
                write(folder, {f"{base}.ref{i}": f"{style} of {other} 0.{i}\n{style} 1.{i}\n" for i in range(4)})
    return folder


def question_map(folder):
    for genre in GENRES:
        for split in ("tune", "test"):
            for style in ("formal", "informal"):
                write(folder, {f"{genre}/{split}/{style}.qids": "_\n77-q\n"})
    return folder


def test_gyafc_with_its_question_map(tmp_path):
    corpus, ids = gyafc(tmp_path / "corpus"), question_map(tmp_path / "ids")
    write(tmp_path, {"l6.tsv": "12\tWho is it?\n77\tWhat is love? \n"})
    found = rows(open_pairs(f"gyafc:{corpus}(qids='{ids}',questions='{tmp_path / 'l6.tsv'}')", "formality"))
    assert len(found) == len({row_id for row_id, _ in found}) == 2 * 2 * 2 * 2 * 4
    by_id = dict(found)
    informal, formal = "Entertainment_Music tune informal 0", "formal of informal 0.3"
    assert by_id["Entertainment_Music-tune-informal-0-3"] == {"informal": informal, "formal": formal, "question": ""}
    formal, informal = "Family_Relationships test formal 1", "informal 1.0"
    expected = {"formal": formal, "informal": informal, "question": "What is love?"}
    assert by_id["Family_Relationships-test-formal-1-0"] == expected
    assert sum(not texts["question"] for texts in by_id.values()) == len(found) // 2


def test_gyafc_finds_a_question_map_beside_the_texts(tmp_path):
    question_map(gyafc(tmp_path / "GYAFC_Corpus"))
    write(tmp_path, {"questions.tsv": "77-q\tWhat is love?\n"})
    found = open_both("gyafc", tmp_path, "(split=test,genre=Family_Relationships)")
    assert len(found) == 2 * 2 * 4
    assert {pair.texts["question"] for pair in found} == {"", "What is love?"}
    assert all(pair.id.startswith("Family_Relationships-test-") for pair in found)
    without_map = open_both("gyafc", gyafc(tmp_path / "plain"))
    assert (without_map.roles, len(without_map)) == ({"formal", "informal"}, 64)


def is_sampled(name):
    return int(hashlib.sha256(name.encode()).hexdigest()[:2], 16) % 10 == 0


SUMMARY = """[SN]URL[SN]\nhttp://example.org/{0}\n\n[SN]TITLE[SN]\nTitle {0}\n\n[SN]FIRST-SENTENCE[SN]\nFirst {0}.\n
[SN]RESTBODY[SN]\nBody of {0}.\n\nMore of it.\n"""


def test_xsum_files(tmp_path):
    ids = [str(n) for n in range(100, 160)]
    write(tmp_path, {f"{'' if n[-1] == '0' else 'bbc-summary-data/'}{n}.summary": SUMMARY.format(n) for n in ids})
    texts = {
        n: {"title": f"Title {n}", "summary": f"First {n}.", "body": f"Body of {n}.\n\nMore of it."} for n in ids
    }
    assert rows(open_both("xsum", tmp_path)) == list(texts.items())
    kept = [n for n in ids if is_sampled(f"{n}.summary")]
    assert 0 < len(kept) < 20
    assert rows(open_both("xsum", tmp_path, "(sample10=True)")) == [(n, texts[n]) for n in kept]


def test_xsum_json(tmp_path):
    objects = [
        {"id": str(n), "category": "x", "title": f"t{n}", "text": f"b{n}", "summary": f"s{n}"} for n in range(60)
    ]
    write(tmp_path, {"articles.jsonl.gz": json_lines(*objects)})
    found = open_both("xsum", tmp_path)
    assert rows(found) == [(str(n), {"title": f"t{n}", "summary": f"s{n}", "body": f"b{n}"}) for n in range(60)]
    sampled = [row[0] for row in rows(open_pairs(f"xsum:{tmp_path / 'articles.jsonl.gz'}(sample10=True)"))]
    assert sampled == [str(n) for n in range(60) if is_sampled(f"{n}.summary")] != []
    untitled = [{key: each[key] for key in ("id", "text", "summary")} for each in objects]
    write(tmp_path, {"articles.jsonl.gz": json_lines(*untitled)})
    assert open_pairs(str(tmp_path), "succinctness").roles == {"summary", "body"}


STORY = "(CNN) -- Text {0}.\n\nMore.\n\n@highlight\n\nFirst point {0}\n\n@highlight\n\nSecond point\n"


def sha1(text):
    return hashlib.sha1(text.encode()).hexdigest()


def test_cnndm(tmp_path):
    urls = [f"http://example.org/{n}" for n in range(60)]
    ids = sorted(map(sha1, urls))
    write(tmp_path, {f"cnn/stories/{each}.story": STORY.format(each) for each in ids[:30]})
    write(tmp_path, {f"dailymail/stories/{each}.story": STORY.format(each) for each in ids[30:]})
    plain = [
        (each, {"summary": f"First point {each}\nSecond point", "body": f"(CNN) -- Text {each}.\n\nMore."})
        for each in ids
    ]
    assert rows(open_both("cnndm", tmp_path)) == plain
    assert rows(open_both("cnndm", tmp_path / "cnn")) == plain[:30]
    assert rows(open_both("cnndm", tmp_path / "cnn" / "stories")) == plain[:30]
    kept = [each for each in ids if is_sampled(each)]
    assert [row[0] for row in rows(open_both("cnndm", tmp_path, "(sample10=True)"))] == kept != []
    write(
        tmp_path,
        {"cnn_titles.tsv": f"{sha1(urls[0])}\tFirst title \n", "dm_titles.tsv": f"{urls[1]}\tSecond title\n"},
    )
    titles = {
        pair.id: pair.texts["title"] for pair in open_pairs(str(tmp_path), "succinctness") if pair.texts["title"]
    }
    assert titles == {sha1(urls[0]): "First title", sha1(urls[1]): "Second title"}
    given = open_pairs(f"cnndm:{tmp_path}(titles='{tmp_path / 'dm_titles.tsv'}')")
    assert [pair.id for pair in given if pair.texts["title"]] == [sha1(urls[1])]


def question(text, answers, *passages):
    contexts = [{"title": f"T{p}", "text": p, "score": 1000, "passage_id": f"{i}"} for i, p in enumerate(passages)]
    return {"question": text, "answers": answers, "positive_ctxs": contexts, "negative_ctxs": [{"text": "no"}]}


NQ = [
    question("who sang it", ["Ann"], "Ann sang it.", "It was Ann."),
    question("who wrote it", ["Bo", "Bob"], "Bob wrote it."),
    question("who knows", []),
    question("who danced", ["Cy"]),
]


def test_nq(tmp_path):
    write(tmp_path, {"biencoder-nq-train.json": json.dumps(NQ, indent=4)})
    first = {"question": "who sang it", "answer": "Ann", "passage": "Ann sang it.", "title": "TAnn sang it."}
    none = {"question": "who danced", "answer": "Cy", "passage": "", "title": "", "passage_id": ""}
    found = open_both("nq", tmp_path)
    assert rows(found) == [("0", {**first, "passage_id": "0"}), ("3", none)]
    every = rows(open_both("nq", tmp_path, "(every_passage=True)"))
    assert [row[0] for row in every] == ["0-0", "0-1", "3-0"]
    assert every[1][1]["passage"] == "It was Ann."
    assert rows(open_pairs(f"nq:{tmp_path / 'biencoder-nq-train.json'}", "factuality")) == rows(found)


MSRP_HEADER = "label\tid1\tid2\tsentence1\tsentence2\n"
SPELT = {"id": "1", "src": "x", "spellchecked": "x"}
QIDS = {f"{genre}/{split}/{style}.qids": "_\n77-q\n" for genre in GENRES for split in ("tune", "test") for style in ("formal", "informal")}  # fmt: skip
DPR = "biencoder-nq-dev.json"


@pytest.mark.parametrize(
    ("files", "spec", "words"),
    [
        ({"test.tsv": "\n".join(MSRP)}, "msrp:{}(split=test)", ("test.tsv:1", "header")),
        ({"test.tsv": MSRP_HEADER + "1\t2\t3\tx\n"}, "msrp:{}(split=test)", ("test.tsv:2", "two sentences")),
        ({"train.tsv": MSRP_HEADER + MSRP[0]}, "{}", ("has no msr_paraphrase_test.txt or test.tsv",)),
        ({"train.tsv": MSRP_HEADER}, "msrp:{}/train.tsv(split=test)", ("no splits",)),
        ({"biased.full": "7\ta\tb\tc\td\n8\ta\tb\n"}, "{}", ("biased.full:2", "columns")),
        ({"dev.jsonl": json_lines({**SPELT, "refs": "x"})}, "jfleg:{}(split=dev)", ("dev.jsonl:1", "'refs'")),
        ({"dev.jsonl": "{}"}, "jfleg:{}(keep_newline=yes)", ("keep_newline must be True or False",)),
        ({"Entertainment_Music/x": ""}, "gyafc:{}(genre=Family)", ("unknown genre 'Family'",)),
        ({"Entertainment_Music/x": ""}, "gyafc:{}(qids='{}')", ("add questions=FILE",)),
        ({**QIDS, "questions.tsv": "76\tWho?\n"}, "{}", ("tune/informal.qids:2", "'77'")),
        ({**QIDS, "questions.tsv": "76\tWho?\n77\n"}, "{}", ("questions.tsv:2", "columns")),
        ({"2.summary": SUMMARY.replace("RESTBODY", "BODY")}, "{}", ("2.summary", "[SN]RESTBODY[SN]")),
        ({"articles.jsonl": json_lines({"id": "1", "text": "x"})}, "xsum:{}", ("articles.jsonl", "'summary'")),
        ({"x": ""}, "cnndm:{}", ("no .story files",)),
        ({"a.story": "x", "titles.tsv": "a\tb\tc\n"}, "{}", ("titles.tsv:1", "title")),
        ({DPR: json.dumps([NQ[0], "x"])}, "{}", ("item [1]", "JSON array of objects")),
        ({DPR: json.dumps([{**NQ[0], "answers": "Ann"}])}, "{}", ("item [0].answers", "list")),
        ({DPR: "[1,\n2 3]"}, "{}", (f"{DPR}:2", "malformed JSON")),
    ],
)
def test_refusals(tmp_path, files, spec, words):
    if "questions.tsv" in files:
        gyafc(tmp_path)
    write(tmp_path, files)
    with pytest.raises(WhyrankError) as caught:
        open_pairs(spec.replace("{}", str(tmp_path)))
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "\n" not in str(caught.value)
