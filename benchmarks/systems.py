"""Every system of the paper's table on the same inputs, PredCls without pixels: three tables (photos: `table.py`).

    python benchmarks/systems.py --data VG150 [--all-boxes VG150_ALLBOXES] [--words WORDS] --runs RUNS [--recipe NAME] \
        [--table whole own swapped] [--rows NAME ...] [--seeds 0 1 2] [--images N] [--epochs N] [--json FILE]

whole     each system as a whole, with the loss, the schedule and the augmentation of all the others (Lu et al. and
          Pixel2Graph keep their own loss, which is the method)
own       loss and frequency bias as published
swapped   the context alone: on one frozen baseline, in the place of the GPI layer

RUNS keeps what is trained: the same command, with the same or other rows, goes on where it stopped. --images trains on
fewer images and --test-images scores fewer, spread evenly; with --data VRD comes --recipe vrd-layout, and --pooled for
its predicate detection (R with one predicate per pair, ngR with all; z: triplets not seen). Figures are means over the
seeds; gains over the baseline are paired by image and seed, 95% intervals are by bootstrap over images.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from rows import BASELINE, FIGURES, REPLICATES, freq_model, markdown, plain_rows, score_seeds, trained
from scenegpi.data import Dataset, open_dataset
from scenegpi.files import write_json
from scenegpi.metrics import Plan, Protocol, ZeroShot
from scenegpi.models import load_model
from scenegpi.models.presets import PRESETS, preset
from scenegpi.models.systems import MODULES
from scenegpi.training import TrainConfig, find_recipe, read_config
from scenegpi.training.recipes import merged, with_epochs

RECIPE = "vg150-layout"
FIRST = "first-stage"
SHOWN = ["R@20", "R@50", "R@100", "ngR@50", "ngR@100", "mR@50", "mR@100", "zR@100"]
POOLED = [f"pooled-{kind}@{k}" for kind in ("R", "ngR", "zR", "ngzR") for k in (50, 100)]

CROSS_ENTROPY = {"loss": {"kind": "paper", "negatives": 1.0, "entities": 1.0}}
OWN: dict[str, dict[str, Any]] = {
    "lu": {"model": {"network": {"negatives": "none"}}},
    "lu-visual": CROSS_ENTROPY,
    "imp": CROSS_ENTROPY,
    "imp-2017": {"loss": {"kind": "paper", "negatives": 0.0, "entities": 1.0}},
    "graph-rcnn": {"loss": {"kind": "released", "negatives": 1.0, "entities": 1.0}},
    "motifs": {**CROSS_ENTROPY, "model": {"network": {"bias": "trained"}}},
    "motifs-no-context": {**CROSS_ENTROPY, "model": {"network": {"bias": "trained"}}},
    "transformer": {**CROSS_ENTROPY, "model": {"network": {"bias": "trained"}}},
    "pixel2graph-boxes": {},
    "gpi-linguistic": {"loss": {"kind": "paper", "negatives": 0.1}},
}
"""As published: cross-entropy over predicates and "no relation" (256 sampled pairs, which is nearly all there are), the
background left out (2017) or weighing as much as the rest (Graph R-CNN), and a trained table of frequencies."""
SWAPPED = ("imp", "graph-rcnn", "motifs", "transformer", "vctree")


class Entry(NamedTuple):
    """A row of a table: what is trained, with which settings, on top of which baseline's folder, by which recipe."""

    preset: str
    options: dict[str, Any]
    start: str | None = None
    recipe: str = RECIPE


def entries(table: str) -> dict[str, Entry]:
    """The rows of a table by name."""
    if table == "own":
        return {name: Entry(name, options, _start(name)) for name, options in OWN.items()}
    if table == "swapped":
        others = {name: Entry(name, {}, FIRST) for name in PRESETS if name != BASELINE}
        swapped = {f"{name}, swapped": Entry(name, {"model": {"on_baseline": True}}, FIRST) for name in SWAPPED}
        return {BASELINE: Entry(BASELINE, {}, FIRST)} | others | swapped
    return {name: Entry(name, {}, _start(name)) for name in (*PRESETS, *MODULES)}


def _start(name: str) -> str | None:
    return FIRST if preset(name).two_stages else None


def row_config(entry: Entry, options: Mapping[str, Any], epochs: int, start: Path | None) -> TrainConfig:
    """The recipe with another model; all rows are trained for `epochs` in all, on images with boxes left out."""
    values: dict[str, Any] = {
        "preset": entry.preset,
        "half": False,
        "augment": {"drop": 0.5},
        "optim": {"keep": "last"},
        "start": None if start is None else str(start),
    }
    config = read_config(find_recipe(entry.recipe), merged(merged(options, values), entry.options))
    first = first_epochs(epochs)
    return with_epochs(config, epochs if start is None else epochs - first)


def first_epochs(epochs: int) -> int:
    """How many of them the baseline below a context gets, as by default."""
    return min(max(round(0.6 * epochs), 1), epochs - 1)


def train_row(
    entry: Entry, table: str, name: str, runs: Path, seed: int, options: Mapping[str, Any], epochs: int
) -> Path:
    """The model of a row, trained unless it is there; the first stage of its seed is shared by all rows."""
    mine = merged(options, {"seed": seed})
    start = None
    if entry.start is not None:
        start = runs / FIRST / f"seed{seed}"
        trained(row_config(Entry(BASELINE, {}, None, entry.recipe), mine, first_epochs(epochs), None), start)
    if start is not None and entry.preset == BASELINE:
        return start / "model"
    kind = "own" if table == "own" else "whole"
    return trained(row_config(entry, mine, epochs, start), runs / kind / f"seed{seed}" / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--all-boxes", type=Path, help="images with all their boxes, scored as well")
    parser.add_argument("--recipe", default=RECIPE, help="whose settings all rows have")
    parser.add_argument("--words", type=Path, help="word vectors, instead of those in the package")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the trained models")
    parser.add_argument("--table", nargs="+", choices=["whole", "own", "swapped"], default=["whole"])
    parser.add_argument("--rows", nargs="+", help="names of rows; by default all")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--images", type=int, default=0, help="number of training images; by default all")
    parser.add_argument("--test-images", type=int, default=0, help="number of test images; by default all")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="images per step")
    parser.add_argument("--warmup", type=int, default=100, help="steps of warm-up")
    parser.add_argument("--pooled", action="store_true", help="recall over all relations together, as on VRD")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    shared: dict[str, Any] = {"data": {"path": str(options.data), "validation": 0, "limit": options.images}}
    if options.words is not None:
        shared["data"]["words"] = str(options.words)
    shared["optim"] = {"batch": options.batch, "warmup": options.warmup}
    train = open_dataset(options.data, "train").drop_empty().spread(options.images)
    test = open_dataset(options.data, "test").spread(options.test_images)
    more = {} if options.all_boxes is None else {"(a) images with all their boxes": open_dataset(options.all_boxes)}
    tests = {**more, "(b) test images": test}
    written: dict[str, Any] = {"task": "predcls, in percent", "training images": len(train)}
    written |= {"epochs": options.epochs, "seeds": options.seeds, "tables": {}}
    for table in options.table:
        every = entries(table)
        chosen = {name: entry._replace(recipe=options.recipe) for name, entry in every.items()}
        if options.rows:
            chosen = {name: entry for name, entry in chosen.items() if name in {BASELINE, *options.rows}}
        models: dict[str, list[Path]] = {}
        for seed in options.seeds:
            for name, entry in chosen.items():
                path = train_row(entry, table, name, options.runs, seed, shared, options.epochs)
                models.setdefault(name, []).append(path)
        written["tables"][table] = report(table, models, train, tests, options.pooled)
        if options.json:
            write_json(options.json, written)


def report(
    table: str, models: Mapping[str, Sequence[Path]], train: Dataset, tests: Mapping[str, Dataset], pooled: bool = False
) -> dict[str, Any]:
    """Scores the models of a table on every data set, prints, and gives what goes into the file."""
    zero_shot = ZeroShot.from_training(train)
    out: dict[str, Any] = {}
    for title, data in tests.items():
        plan = Plan(Protocol("predcls", data=title), data.vocabulary, zero_shot, bootstrap=REPLICATES)
        rows = {"FREQ": score_seeds([freq_model(train)], data, plan)}
        for name, paths in models.items():
            print(f"scoring {name} on {title}", flush=True)
            rows[name] = score_seeds([load_model(path) for path in paths], data, plan)
        plain = plain_rows(rows, POOLED if pooled else FIGURES, [] if pooled else ["R@50", "pair-R@5"])
        shown = markdown(plain, POOLED, POOLED[0], POOLED[:1]) if pooled else markdown(plain, SHOWN, "R@50")
        print(f"\n{table}, {title}: {len(data):,} images, PredCls, in percent\n\n{shown}\n")
        out[title] = {"images": len(data), "rows": plain}
    return {"data": out}


if __name__ == "__main__":
    main()
