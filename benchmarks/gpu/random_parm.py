"""A PaRM with random weights and another network's tokenizer, to measure how fast a table is built with its size.

    python benchmarks/gpu/random_parm.py TOKENIZER OUT --size base
    whyrank tables learn parm --network OUT --out t.arrow --query-terms 1115 --threshold 0.9 --top 1000 -c ...

Random weights put half of all pairs above the default threshold: a high one keeps the table small.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from term_pairs import SIZES

from whyrank.networks import ModelTokenizer, make, new_encoder, save


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", type=Path, help="tokenizer.json")
    parser.add_argument("out", type=Path, help="folder of the network")
    parser.add_argument("--size", choices=SIZES, default="base")
    given = parser.parse_args()
    torch.manual_seed(0)
    pieces = ModelTokenizer(given.tokenizer)
    shape = {"model_type": "bert", "vocab_size": len(pieces), **SIZES[given.size]}
    save(make("parm", new_encoder(shape), pieces).eval(), given.out)


if __name__ == "__main__":
    main()
