"""Labels and relations of real photos, VRD: five-fold cross-validation by photo, with and without context.

    python benchmarks/vrd_photos.py --data VRD --runs RUNS [--cache FEATURES] [--words WORDS] [--json FILE]

The photos of VRD (official test images) are dealt into folds. For each fold the recipe `vrd-photo`, on ImageNet's
features instead of the photo network's, trains on the other photos and on the 3,780 annotated training images without
pixels; then the photos of the fold are predicted from their pixels. Every photo is tested once; a figure over all folds
is over all photos.

    RUNS/fold0/baseline/       a run of `scenegpi train`, and so on for each row: those with context take over its label
                               predictor and its baseline

What RUNS holds already is not made again. One process, one thread. 95% intervals by bootstrap over photos; gains are
paired with the baseline.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from rows import (
    BASELINE,
    REPLICATES,
    LabelCounts,
    Row,
    count_labels,
    markdown,
    plain_labels,
    plain_rows,
    predictions,
    preset_config,
    trained,
)
from scenegpi.files import write_json
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Plan, Protocol, RecallState
from scenegpi.models import SceneModel, load_model
from scenegpi.training import TrainConfig
from scenegpi.training.config import merged
from scenegpi.training.data_split import left_out

RECIPE = "vrd-photo"
SHOWN = ["R@20", "R@50", "R@100", "mR@50"]
TASKS = ("sgcls", "predcls")
HEAD = "label predictor alone"
SHIPPED = "gpi-feature-attention, 2 steps"
ROWS: dict[str, tuple[str, int]] = {
    BASELINE: (BASELINE, 0),
    "gpi-feature-attention": ("gpi-feature-attention", 1),
    "gpi-no-attention": ("gpi-no-attention", 1),
    "gpi-neighbour-attention": ("gpi-neighbour-attention", 1),
    "gpi-linguistic": ("gpi-linguistic", 1),
    SHIPPED: ("gpi-feature-attention", 2),
    "gpi-feature-attention, 3 steps": ("gpi-feature-attention", 3),
}
"""Preset and steps."""
FIXED = {"backbone": "efficientnet-lite0", "roi_layers": ["middle"], "photo_size": 480}
FIXED |= {"square": False, "mirror": False, "roi_bins": 2, "surroundings": 0.0}
BOXES: dict[str, dict[str, Any]] = {
    "crop": {"model": {"vision": {"features": {**FIXED, "nodes": "crop"}}}, "fit": {"batch": 256, "rate": 2e-3}},
    "both": {"model": {"vision": {"features": {**FIXED, "nodes": "both"}}}},
}
"""A box by its crop alone; or also by RoIAlign on a map of the whole photo, which shows more."""


class Scores(NamedTuple):
    """One row, on one fold or on several: labels, and a state of recall for each task."""

    labels: LabelCounts
    recall: dict[str, RecallState]

    def join(self, other: Scores) -> Scores:
        """Both, over the photos of both."""
        together = {task: self.recall[task] + other.recall[task] for task in self.recall}
        return Scores(self.labels.join(other.labels), together)


def fold_config(name: str, fold: int, folder: Path, options: dict[str, Any]) -> TrainConfig:
    """The run of a row on the photos of the other folds."""
    preset, steps = ROWS[name]
    values = merged(options, {"data": {"fold": fold, "splits": "photos"}, "calibration": None})
    if steps:
        values = merged(values, {"model": {"context": {"steps": steps}}})
    return preset_config(RECIPE, preset, values, folder / BASELINE)


def run_folder(folder: Path, name: str) -> Path:
    """Where the run of a row is kept."""
    return folder / name.replace(", ", "-").replace(" ", "-")


def fold_photos(model: SceneModel, config: TrainConfig) -> list[SceneGraph]:
    """The photos that were left out, with the label distributions of the model's label predictor."""
    assert model.vision is not None
    data = left_out(config.data)
    return [model.vision.add_labels(data.image_path(i), graph) for i, graph in enumerate(data)]


def score(model: SceneModel, test: Sequence[SceneGraph]) -> Scores:
    """A model on photos whose graphs carry the label predictor's distributions."""
    found = {task: list(predictions(model, test, task)) for task in TASKS}
    recall = {}
    for task in TASKS:
        plan = Plan(Protocol(task, data="vrd photos"), model.vocabulary, bootstrap=REPLICATES)  # type: ignore[arg-type]
        recall[task] = RecallState(plan).update(found[task], test)
    return Scores(count_labels(found["sgcls"], test), recall)


def table(scores: dict[str, Scores], heads: LabelCounts) -> dict[str, Any]:
    """For JSON: labels and both tasks, every row against the baseline."""
    base = scores[BASELINE].labels
    labels = {HEAD: plain_labels(heads, base)}
    labels |= {n: plain_labels(s.labels, base if n != BASELINE else None) for n, s in scores.items()}
    out: dict[str, Any] = {"photos": len(heads.rows), "boxes": int(heads.rows[:, 0].sum()), "labels": labels}
    for task in TASKS:
        results = {name: each.recall[task].result() for name, each in scores.items()}
        out[task] = plain_rows({name: Row(each, [each]) for name, each in results.items()}, SHOWN)
    return out


def show(found: dict[str, Any]) -> None:
    """Prints the tables, as docs/vrd-photos.md has them."""
    print(f"\n{found['photos']} photos, {found['boxes']:,} boxes, graph constraint, in percent\n")
    print(markdown(found["labels"], ["top-1", "top-5"], "top-1", ["top-1"]))
    for task in TASKS:
        print(f"\n{task}\n\n{markdown(found[task], SHOWN, 'R@50', ['R@50', 'R@100'])}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--photos", type=Path, help="folder of the photos, where it is not beside the data")
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--cache", type=Path, help="folder of box features; by default in RUNS")
    parser.add_argument("--words", type=Path, help="word vectors (`scenegpi words train`); without, no linguistic row")
    parser.add_argument("--boxes", choices=list(BOXES), default="crop", help="a box by its crop, or RoIAlign as well")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--only", type=int, nargs="+", help="these folds alone")
    parser.add_argument("--epochs", type=int, help="of every run, to try the command")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = [BASELINE, *(n for n in options.rows if n != BASELINE and (options.words or "linguistic" not in n))]
    where = {"path": options.data, "photos": options.photos, "cache": options.cache or options.runs / "features"}
    where |= {"words": options.words}
    values = merged(
        BOXES[options.boxes],
        {"data": {"folds": options.folds} | {key: str(value) for key, value in where.items() if value is not None}},
    )
    if options.epochs:
        values["epochs"] = options.epochs
    heads: list[LabelCounts] = []
    per_fold: dict[int, dict[str, Scores]] = {}
    for k in options.only if options.only is not None else range(options.folds):
        folder = options.runs / f"fold{k}"
        test: list[SceneGraph] = []
        per_fold[k] = {}
        for name in names:
            started = time.process_time()
            config = fold_config(name, k, folder, values)
            model = load_model(trained(config, run_folder(folder, name)))
            if not test:
                test = fold_photos(model, config)
                heads.append(count_labels(test, test))
            per_fold[k][name] = score(model, test)
            top1, r50 = per_fold[k][name].labels.shares[0], per_fold[k][name].recall["sgcls"].result().figures["R@50"]
            spent = time.process_time() - started
            print(f"fold {k}, {name}: top-1 {100 * top1:.1f}, SGCls R@50 {100 * r50:.1f}; {spent:.0f} s", flush=True)
    found: dict[str, Any] = {"folds": {}, "command": "benchmarks/vrd_photos.py", "seed": 0, "boxes by": options.boxes}
    whole: dict[str, Scores] = {}
    for head, (k, rows) in zip(heads, per_fold.items(), strict=True):
        found["folds"][str(k)] = table(rows, head)
        whole = {name: whole[name].join(each) if name in whole else each for name, each in rows.items()}
    every = heads[0]
    for head in heads[1:]:
        every = every.join(head)
    found |= table(whole, every)
    show(found)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        write_json(options.json, found)


if __name__ == "__main__":
    main()
