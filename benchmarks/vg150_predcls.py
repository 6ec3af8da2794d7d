"""PredCls without pixels on Visual Genome: FREQ, FREQ + overlap, baseline and the presets with context, in one table.

    python benchmarks/vg150_predcls.py --data VG150 --all-boxes VG150_ALLBOXES [--words WORDS] --runs RUNS \
        [--seeds 0 1 2] [--json FILE]

trains what RUNS does not hold yet by the recipe `vg150-layout` (an hour and a half of one core for three seeds), then
scores: (a) the test images of VG150, (b) images with all their boxes. WORDS are from `scenegpi words train`. The mean
over the seeds, 95% intervals by bootstrap over images, gains paired with the baseline of the same seeds. "Ensemble" in
FILE is the mean of the seeds' distributions, an upper bound. --model NAME=FOLDER scores other models, too.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rows import (
    FIGURES,
    REPLICATES,
    Row,
    freq_model,
    markdown,
    plain_rows,
    predictions,
    score,
    score_seeds,
    train_presets,
)
from scenegpi.data import Dataset, open_dataset
from scenegpi.files import write_json
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Plan, Protocol, ZeroShot
from scenegpi.models import load_model
from scenegpi.models.presets import PRESETS
from scenegpi.models.prior import CountPrior, relation_table
from scenegpi.pairs import complete_pairs, edge_numbers
from scenegpi.training import find_recipe, read_config

RECIPE = "vg150-layout"
SHOWN = ["R@20", "R@50", "R@100", "ngR@20", "ngR@50", "ngR@100", "mR@50", "mR@100", "zR@50", "zR@100"]
BY_PREDICATE = ["R@50", "R@100", "pair-R@5"]


def overlap_table(train: Dataset) -> NDArray[np.int64]:
    """The counts of FREQ + overlap, as in Neural Motifs: of pairs without a relation, those that overlap."""
    counts = relation_table(train)
    for graph in train:
        pairs = complete_pairs(np.array([len(graph)]))
        far = ~overlaps(graph, pairs)
        related = graph.relations[graph.relations[:, 0] != graph.relations[:, 1]]
        far[edge_numbers(related, len(graph))] = False
        np.subtract.at(counts[..., 0], tuple(graph.labels[pairs[:, far]]), 1)
    return counts


def only_overlapping(graph: SceneGraph) -> SceneGraph:
    """A prediction without the pairs whose boxes have no common area: FREQ + overlap does not predict them."""
    assert graph.pairs is not None
    assert graph.pair_dist is not None
    near = overlaps(graph, graph.pairs.T)
    return graph.replace(pairs=graph.pairs[near], pair_dist=graph.pair_dist[near])


def overlaps(graph: SceneGraph, pairs: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether the boxes of pairs (2, E) have a common area."""
    a, b = graph.boxes[pairs]
    return np.asarray((np.minimum(a[:, 2:], b[:, 2:]) > np.maximum(a[:, :2], b[:, :2])).all(axis=1))


def score_rows(train: Dataset, data: Dataset, title: str, folders: dict[str, list[Path]]) -> dict[str, Row]:
    """All systems on one data set."""
    zero_shot = ZeroShot.from_training(train)
    plan = Plan(Protocol("predcls", data=title), data.vocabulary, zero_shot, bootstrap=REPLICATES)
    freq = freq_model(train)
    rows = {"FREQ": score_seeds([freq], data, plan)}
    assert isinstance(freq.prior, CountPrior)
    freq.prior.set_counts(torch.from_numpy(overlap_table(train)))
    rows["FREQ + overlap"] = score(map(only_overlapping, predictions(freq, data, "predcls")), data, plan)
    for name, paths in folders.items():
        print(f"scoring {name} on {title}", flush=True)
        rows[name] = score_seeds([load_model(path) for path in paths], data, plan)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--all-boxes", type=Path, required=True)
    parser.add_argument("--words", type=Path, help="word vectors, instead of those in the package")
    parser.add_argument("--runs", type=Path, help="folder of the trained models")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FOLDER", help="a row; may be repeated")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    folders: dict[str, list[Path]] = {}
    for word in options.model:
        name, _, folder = word.rpartition("=")
        folders.setdefault(name or folder, []).append(Path(folder))
    if options.runs:
        where = {"path": str(options.data), "words": None if options.words is None else str(options.words)}
        folders |= train_presets(RECIPE, options.runs, options.seeds, {"data": where}, list(PRESETS))
    aside = read_config(find_recipe(RECIPE), {}).data.validation
    train = open_dataset(options.data, "train", validation=aside or 0)
    found = {}
    for title, data in (
        ("(a) test images", open_dataset(options.data, "test")),
        ("(b) images with all their boxes", open_dataset(options.all_boxes)),
    ):
        rows = score_rows(train, data, title, folders)
        found[title] = {"images": len(data), "rows": plain_rows(rows, FIGURES, BY_PREDICATE)}
        print(f"\n{title}: {len(data):,} images, PredCls, in percent\n")
        print(markdown(found[title]["rows"], SHOWN, "R@50"), flush=True)
    if options.json:
        about = {
            "task": "PredCls without pixels, in percent; 95% intervals by bootstrap over images; gains are paired",
            "training images": len(train),
            "validation images": aside,
            "seeds": options.seeds,
        }
        write_json(options.json, {**about, "data": found})


if __name__ == "__main__":
    main()
