"""Tiny models with random weights, in every form that rankers read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
    T5Config,
    T5ForConditionalGeneration,
)

from whyrank import networks

WORDS = [
    "the", "a", "of", "in", "is", "was", "who", "what", "berlin", "wall", "fell", "robert", "gray", "explorer", "simple",
    "wasn", "since", "had", "stood", "and", "emoji", "x",
]  # fmt: skip
LETTERS = [*"abcdefghijklmnopqrstuvwxyz0123456789", *"?!.,;'-"]
POSITIONS = 64
SHAPE = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96,
         "initializer_range": 0.2}  # fmt: skip  # large, so that scores differ


def vocabulary(special: list[str]) -> dict[str, int]:
    tokens = [*special, *WORDS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    return {token: number for number, token in enumerate(dict.fromkeys(tokens))}


def wordpiece() -> PreTrainedTokenizerFast:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]"]
    return framed(special, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", "[UNK]")


def roberta_like() -> PreTrainedTokenizerFast:
    """Another frame around a pair, without types."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    return framed(special, "<s> $A </s>", "<s> $A </s> </s> $B </s>", "<unk>")


def framed(special: list[str], single: str, pair: str, unknown: str) -> PreTrainedTokenizerFast:
    vocab = vocabulary(special)
    made = Tokenizer(models.WordPiece(vocab, unk_token=unknown, max_input_chars_per_word=100))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    used = [(token, vocab[token]) for token in special]
    made.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=used)
    names = {"bos": "<s>", "eos": "</s>"} if "<s>" in special else {}
    find = {name: next(t for t in special if name in t.lower()) for name in ("pad", "unk", "mask")}
    names |= find | ({"cls": "<s>", "sep": "</s>"} if "<s>" in special else {"cls": "[CLS]", "sep": "[SEP]"})
    typed = [] if "<s>" in special else ["token_type_ids"]
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        model_max_length=POSITIONS,
        model_input_names=["input_ids", *typed, "attention_mask"],
        **{f"{name}_token": token for name, token in names.items()},
    )


def save(model: torch.nn.Module, tokenizer: PreTrainedTokenizerFast, folder: Path) -> Path:
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder


def bert(tokenizer: PreTrainedTokenizerFast, **more: object) -> BertConfig:
    return BertConfig(vocab_size=len(tokenizer), max_position_embeddings=POSITIONS, pad_token_id=0, **SHAPE, **more)


def cross(folder: Path, outputs: int = 1, seed: int = 1) -> Path:
    torch.manual_seed(seed)
    tokenizer = wordpiece()
    return save(BertForSequenceClassification(bert(tokenizer, num_labels=outputs)), tokenizer, folder)


def roberta(folder: Path) -> Path:
    torch.manual_seed(2)
    tokenizer = roberta_like()
    config = RobertaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=POSITIONS + 2, type_vocab_size=1, num_labels=1, **SHAPE
    )
    return save(RobertaForSequenceClassification(config), tokenizer, folder)


def xlmr(folder: Path) -> Path:
    """XLM-R, saved by sentence-transformers with a sigmoid, which is not part of a score here."""
    from sentence_transformers import CrossEncoder
    from transformers import XLMRobertaConfig, XLMRobertaForSequenceClassification

    torch.manual_seed(10)
    tokenizer = roberta_like()
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=POSITIONS + 2, type_vocab_size=1, num_labels=1, **SHAPE
    )
    save(XLMRobertaForSequenceClassification(config), tokenizer, folder / "plain")
    CrossEncoder(str(folder / "plain"), device="cpu", activation_fn=torch.nn.Sigmoid()).save(str(folder / "cross"))
    return folder / "cross"


def modernbert(folder: Path, pooling: str = "mean") -> Path:
    """ModernBERT: rotary positions, layers of its own, no types; its head reads all positions or the first."""
    from transformers import ModernBertConfig, ModernBertForSequenceClassification

    torch.manual_seed(11)
    tokenizer = roberta_like()
    config = ModernBertConfig(
        vocab_size=len(tokenizer), max_position_embeddings=POSITIONS, num_labels=1, classifier_pooling=pooling,
        local_attention=16, pad_token_id=tokenizer.pad_token_id, **{**SHAPE, "num_hidden_layers": 4},
    )  # fmt: skip
    return save(ModernBertForSequenceClassification(config), tokenizer, folder)


CHAT = (
    "{% for m in messages if m.role == 'system' %}<|im_start|>system\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "<|im_start|>user\n{% for role in ['query', 'document'] %}<{{ role }}>: "
    "{{ messages | selectattr('role', 'eq', role) | map(attribute='content') | first }}\n{% endfor %}<|im_end|>\n"
    "<|im_start|>assistant\n"
)


def qwen3(folder: Path, prompt: str | None = None, template: bool = True) -> Path:
    """A causal language model that answers yes or no to a question made by its chat template."""
    from sentence_transformers import CrossEncoder
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(12)
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<unk>", "yes", "no", "system", "user", "assistant"]
    vocab = vocabulary([*special, "query", "document", "<", ">", ":"])
    made = Tokenizer(models.WordPiece(vocab, unk_token="<unk>", max_input_chars_per_word=100))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<|endoftext|>", eos_token="<|im_end|>", unk_token="<unk>",
        additional_special_tokens=["<|im_start|>"], model_max_length=2 * POSITIONS,
    )  # fmt: skip
    if template:
        tokenizer.chat_template = CHAT
    config = Qwen3Config(
        vocab_size=len(tokenizer), num_key_value_heads=2, head_dim=16, max_position_embeddings=2 * POSITIONS,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id, **SHAPE,
    )  # fmt: skip
    save(Qwen3ForCausalLM(config), tokenizer, folder / "plain")
    prompts = {} if prompt is None else {"prompts": {"own": prompt}, "default_prompt_name": "own"}
    CrossEncoder(str(folder / "plain"), device="cpu", **prompts).save(str(folder / "cross"))
    return folder / "cross"


def plain(folder: Path) -> Path:
    torch.manual_seed(3)
    tokenizer = wordpiece()
    return save(BertModel(bert(tokenizer)), tokenizer, folder)


def bi(folder: Path, **more: object) -> Path:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    reads = Transformer(str(plain(folder / "plain")))
    SentenceTransformer(modules=[reads, Pooling(64)], device="cpu", **more).save(str(folder / "bi"))
    return folder / "bi"


def sparse(folder: Path) -> Path:
    from sentence_transformers import SparseEncoder

    torch.manual_seed(4)
    tokenizer = wordpiece()
    save(BertForMaskedLM(bert(tokenizer)), tokenizer, folder / "masked")
    SparseEncoder(str(folder / "masked"), device="cpu").save(str(folder / "sparse"))
    return folder / "sparse"


def colbert(folder: Path) -> Path:
    from sentence_transformers import MultiVectorEncoder

    MultiVectorEncoder(str(plain(folder / "plain")), device="cpu").save(str(folder / "late"))
    return folder / "late"


def t5(folder: Path) -> Path:
    torch.manual_seed(5)
    tokenizer = sentencepiece()
    config = T5Config(
        vocab_size=len(tokenizer), d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    return save(T5ForConditionalGeneration(config), tokenizer, folder)


def bart(folder: Path) -> Path:
    """A sequence-to-sequence model with 64 positions."""
    tokenizer = sentencepiece()
    sizes = (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))
    shape = {f"{part}_{what}": size for part in ("encoder", "decoder") for what, size in sizes}
    config = BartConfig(
        vocab_size=len(tokenizer), max_position_embeddings=POSITIONS, d_model=16, pad_token_id=0, **shape
    )
    return save(BartForConditionalGeneration(config), tokenizer, folder)


def sentencepiece() -> PreTrainedTokenizerFast:
    tokens = ["<pad>", "</s>", "<unk>", "▁true", "▁false", "▁Query:", "▁Document:", "▁Relevant:", "▁"]
    tokens += [f"▁{word}" for word in WORDS] + LETTERS + [letter.upper() for letter in LETTERS[:26]] + [":"]
    scores = [(token, -float(i % 13)) for i, token in enumerate(dict.fromkeys(tokens))]
    made = Tokenizer(models.Unigram(scores, unk_id=2))
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=512
    )


def network(folder: Path, architecture: str = "cross", **settings: object) -> Path:
    torch.manual_seed(6)
    tokenizer = wordpiece()
    tokenizer.save_pretrained(str(folder / "tokens"))
    shape = {"model_type": "bert", "vocab_size": len(tokenizer), "max_position_embeddings": 128, **SHAPE}
    own = networks.ModelTokenizer(folder / "tokens")
    made = networks.make(architecture, networks.new_encoder(shape), own, **settings)
    networks.save(made, folder / "network")
    return folder / "network"


def stanford(folder: Path) -> Path:
    """A ColBERT checkpoint as its authors release it: encoder and projection in one file."""
    torch.manual_seed(7)
    tokenizer = wordpiece()
    model = BertModel(bert(tokenizer, architectures=["HF_ColBERT"]), add_pooling_layer=False)
    save(model, tokenizer, folder)
    state = {f"bert.{name}": tensor.clone() for name, tensor in model.state_dict().items()}
    save_file(state | {"linear.weight": torch.randn(16, 64) / 8}, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text()) | {"architectures": ["HF_ColBERT"]}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "artifact.metadata").write_text(json.dumps({"query_maxlen": 32, "doc_maxlen": 60}))
    return folder


def words(folder: Path, architecture: str) -> Path:
    """A network over word vectors."""
    torch.manual_seed(8)
    vectors = np.random.default_rng(8).standard_normal((len(WORDS), 16))
    made = networks.networks.factory(architecture).over(WORDS, vectors, buckets=50)
    networks.save(made, folder)
    return folder


def tokens(folder: Path, architecture: str) -> Path:
    """A network with vectors of its own for tokens."""
    torch.manual_seed(9)
    wordpiece().save_pretrained(str(folder / "tokens"))
    tokenizer = networks.ModelTokenizer(folder / "tokens")
    made = networks.networks.factory(architecture).over_tokenizer(tokenizer, dims=16, widths=(16, 16, 8))
    networks.save(made, folder / "network")
    return folder / "network"
