"""Models with random weights for benchmarks, one of each family of neural rankers, over the tokenizer that is bundled."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from whyrank.rankers.neural.weights import model_folder

SHAPES = {
    "6 x 384": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
    "12 x 768": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
    "2 x 128": {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512},
}
CHAT = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}answer: "


def tokenizer() -> Any:
    from transformers import PreTrainedTokenizerFast

    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "cls", "sep", "unk", "mask")}
    names = ["input_ids", "token_type_ids", "attention_mask"]
    file = str(model_folder("bundled") / "tokenizer.json")
    return PreTrainedTokenizerFast(tokenizer_file=file, model_max_length=512, model_input_names=names, **special)


def save(model: Any, folder: Path, tokens: Any = None) -> str:
    model.save_pretrained(str(folder))
    (tokens or tokenizer()).save_pretrained(str(folder))
    return str(folder)


def bert(shape: str, **more: Any) -> Any:
    from transformers import BertConfig

    return BertConfig(vocab_size=len(tokenizer()), pad_token_id=0, initializer_range=0.05, **SHAPES[shape], **more)


def cross(folder: Path, shape: str) -> str:
    from transformers import BertForSequenceClassification

    return save(BertForSequenceClassification(bert(shape, num_labels=1)), folder)


def bi(folder: Path, shape: str) -> str:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import BertModel

    plain = save(BertModel(bert(shape)), folder / "plain")
    modules = [Transformer(plain), Pooling(SHAPES[shape]["hidden_size"])]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder / "bi"))
    return str(folder / "bi")


def sparse(folder: Path, shape: str) -> str:
    from sentence_transformers import SparseEncoder
    from transformers import BertForMaskedLM

    made = BertForMaskedLM(bert(shape))
    made.cls.predictions.bias.data.fill_(-3.0)  # so that most weights are zero, as in trained models
    SparseEncoder(save(made, folder / "masked"), device="cpu").save(str(folder / "sparse"))
    return str(folder / "sparse")


def late(folder: Path, shape: str) -> str:
    from sentence_transformers import MultiVectorEncoder
    from transformers import BertModel

    plain = save(BertModel(bert(shape)), folder / "plain")
    MultiVectorEncoder(plain, device="cpu").save(str(folder / "late"))
    return str(folder / "late")


def t5(folder: Path, shape: str) -> str:
    from transformers import T5Config, T5ForConditionalGeneration

    own, tokens = SHAPES[shape], tokenizer()
    sizes = {"d_model": own["hidden_size"], "d_ff": own["intermediate_size"], "d_kv": 32}
    layers = {"num_layers": own["num_hidden_layers"], "num_heads": own["num_attention_heads"]}
    config = T5Config(vocab_size=len(tokens), decoder_start_token_id=0, pad_token_id=0, **sizes, **layers)
    return save(T5ForConditionalGeneration(config), folder, tokens)


def causal(folder: Path, shape: str) -> str:
    from sentence_transformers import CrossEncoder
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokens = tokenizer()
    tokens.chat_template = CHAT
    heads = {"num_key_value_heads": SHAPES[shape]["num_attention_heads"], "head_dim": 64}
    config = Qwen3Config(vocab_size=len(tokens), pad_token_id=0, eos_token_id=None, **SHAPES[shape], **heads)
    plain = save(Qwen3ForCausalLM(config), folder / "plain", tokens)
    CrossEncoder(plain, device="cpu").save(str(folder / "cross"))
    return str(folder / "cross")


def vanilla(folder: Path, shape: str) -> str:
    from whyrank import networks

    tokenizer().save_pretrained(str(folder / "tokens"))
    own = {"model_type": "bert", "vocab_size": len(tokenizer()), **SHAPES[shape]}
    made = networks.make("vanilla", networks.new_encoder(own), networks.ModelTokenizer(folder / "tokens"), chunks=1)
    networks.save(made, folder / "network")
    return str(folder / "network")


@dataclass(frozen=True)
class Family:
    """A family: the name and arguments of its ranker, what makes a model, and the peer that scores the same pairs."""

    ranker: str
    make: Callable[[Path, str], str]
    peer: str
    arguments: tuple[tuple[str, str], ...] = ()


FAMILIES = {
    "cross": Family("cross", cross, "CrossEncoder.predict"),
    "bi": Family("bi", bi, "SentenceTransformer.encode"),
    "sparse": Family("sparse", sparse, "SparseEncoder.encode"),
    "late": Family("late", late, "MultiVectorEncoder.encode"),
    "t5": Family("t5", t5, "transformers", (("true", "true"), ("false", "false"))),
    "causal": Family("cross", causal, "CrossEncoder.predict"),
    "vanilla": Family("vanilla", vanilla, "transformers"),
}


def peer(family: str, folder: str, device: str, half: bool = False) -> Callable[[list[str], list[str], int], Any]:
    """What scores pairs with sentence-transformers, or transformers: queries, texts, batch size."""
    import sentence_transformers as st

    options = {"model_kwargs": {"dtype": torch.bfloat16}} if half else {}
    if family in ("cross", "causal"):
        model: Any = st.CrossEncoder(folder, device=device, **options)
        return lambda q, d, n: model.predict(list(zip(q, d, strict=True)), batch_size=n, show_progress_bar=False)
    if family in ("t5", "vanilla"):
        return plain(family, folder, device)
    kind = {"bi": "SentenceTransformer", "sparse": "SparseEncoder", "late": "MultiVectorEncoder"}[family]
    model = getattr(st, kind)(folder, device=device, **options)
    encode = {"bi": "encode"}.get(family, "encode_document")

    def score(queries: list[str], docs: list[str], size: int) -> Any:
        texts = list(dict.fromkeys([*queries, *docs]))  # each distinct one once, as here
        return getattr(model, encode)(texts, batch_size=size, show_progress_bar=False)

    return score


def plain(family: str, folder: str, device: str) -> Callable[[list[str], list[str], int], Any]:
    """A loop over batches with transformers."""
    from transformers import AutoModelForSeq2SeqLM, BertModel

    tokens = tokenizer()
    model: Any = AutoModelForSeq2SeqLM.from_pretrained(folder) if family == "t5" else BertModel(bert(_shape(folder)))
    model = model.to(device).eval()

    def score(queries: list[str], docs: list[str], size: int) -> Any:
        found = []
        for i in range(0, len(docs), size):
            batch = tokens(
                queries[i : i + size], docs[i : i + size], truncation=True, padding=True, return_tensors="pt"
            )
            batch = batch.to(device)
            with torch.inference_mode():
                if family == "t5":
                    batch.pop("token_type_ids")
                    start = torch.zeros(len(batch["input_ids"]), 1, dtype=torch.long, device=device)
                    found.append(model(**batch, decoder_input_ids=start).logits[:, 0, :2].cpu())
                else:
                    found.append(model(**batch).last_hidden_state[:, 0, :1].cpu())
        return torch.cat(found)

    return score


def _shape(folder: str) -> str:
    width = json.loads((Path(folder) / "config.json").read_text())["encoder"]["hidden_size"]
    return next(name for name, shape in SHAPES.items() if shape["hidden_size"] == width)


def texts() -> tuple[list[str], list[str]]:
    """Queries and passages of TREC DL 2019 where WHYRANK_DATA is set, else random words of the vocabulary."""
    data = os.environ.get("WHYRANK_DATA")
    if data:
        folder = Path(data) / "msmarco_dl19"
        queries = [line.split("\t")[1] for line in (folder / "queries.tsv").read_text().splitlines()]
        with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
            return queries, [json.loads(line)["text"] for line in file]
    rng, words = np.random.default_rng(0), [word for word in sorted(tokenizer().get_vocab()) if word.isalpha()]
    lengths = rng.gamma(8.0, 9.5, 20_000).astype(int) + 8
    return ([" ".join(rng.choice(words, 6)) for _ in range(43)], [" ".join(rng.choice(words, n)) for n in lengths])
