"""The table of the paper from photos: every system by one recipe, SGCls and PredCls, several seeds, with intervals.

    scenegpi train --recipe vg150-table --preset baseline --data VG150 --photos DIR --other COCO.json \
        --other-photos DIR --other-ids IDS.json --out RUNS/photo
    python benchmarks/table.py train RUNS --data VG150 --photos DIR [--rows NAME ...] [--seeds 0 1 2]
    python benchmarks/table.py score RUNS --data VG150 --photos DIR --all-boxes ALL --all-photos DIR
    python benchmarks/table.py print RUNS [--over ROW] [--json FILE]

The first command trains the halves of the photo network of `vg150-photo`: all rows learn from the same held-out label
distributions, and are scored on those of `vg150-photo` itself. Images without a photo train on resampled ones. `train`
trains rows that RUNS does not hold, `score` scores what is finished and not scored yet (commands with other seeds may
run side by side), `print` makes the tables of it. A figure is the mean over the seeds, its 95% interval by bootstrap
over images and over seeds; gains are paired by image and seed: with the baseline of as many epochs, and with the row's
own form without context.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rows import BASELINE, FIGURES, REPLICATES, count_labels, freq_model, percent, predictions, trained
from scenegpi.data import Dataset, open_dataset
from scenegpi.data.distributions import attach_distributions, image_key, read_distributions, write_distributions
from scenegpi.files import read_object, whole_file, write_json
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Plan, Protocol, RecallState, ZeroShot
from scenegpi.metrics.intervals import percentile_interval
from scenegpi.models import SceneModel, load_model
from scenegpi.models.presets import preset
from scenegpi.training import find_recipe, read_config
from scenegpi.training.recipes import merged
from vg150_photos import photographed

RECIPE, PHOTO, SCORES, COST = "vg150-table", "photo", "scores.npz", "cost.json"
SHIPPED, FREQ, LABELS_ALONE = "vg150-photo", "FREQ", "label predictor alone"
FIRST, PLAIN = "first-stage", "motifs-no-context"
SHOWN = ["R@20", "R@50", "R@100", "ngR@20", "ngR@50", "ngR@100", "mR@50", "mR@100", "ngmR@100", "zR@50", "zR@100"]
PRINTED, WHOLE = ["top-1", "R@20", "R@50", "R@100", "ngR@50", "ngR@100", "mR@50", "zR@100"], ("R@50", "R@100")
GAINS, LABELS = ("top-1", "R@50", "R@100", "ngR@50", "ngR@100"), ("top-1", "top-5")
SETS = {
    "test photos": ("sgcls", "predcls"),
    "photos with all boxes": ("sgcls", "predcls"),
    "test layouts": ("predcls",),
    "layouts with all boxes": ("predcls",),
}


class Entry(NamedTuple):
    """A row: what is trained with which settings beyond the recipe's, and the row that is its form without context."""

    preset: str
    alone: str | None = None
    options: Mapping[str, Any] = {}


GPI = ("gpi-no-attention", "gpi-neighbour-attention", "gpi-feature-attention", "gpi-linguistic")
ROWS = {
    FIRST: Entry(BASELINE),
    BASELINE: Entry(BASELINE),
    **{name: Entry(name, FIRST) for name in GPI},
    PLAIN: Entry(PLAIN),
    **{name: Entry(name, PLAIN) for name in ("motifs", "transformer", "vctree")},
    **{name: Entry(name) for name in ("pe-net", "lu", "lu-visual")},
    **{name: Entry(name, "lu-visual") for name in ("graph-rcnn", "imp", "pixel2graph-boxes")},
    "one step": Entry(GPI[2], FIRST, {"model": {"network": {"steps": 1}}}),
    "not read again": Entry(GPI[2], FIRST, {"model": {"network": {"read_again": False}}}),
}


def train_row(name: str, seed: int, runs: Path, options: Mapping[str, Any]) -> None:
    """Trains a row unless it is there. All have as many epochs: a GPI row has half of them, on a first stage that had
    the other half; `cost.json` says how many CPU seconds were spent."""
    entry, folder = ROWS[name], runs / f"seed{seed}"
    whole = read_config(find_recipe(RECIPE), {"preset": BASELINE}).baseline.epochs
    two = preset(entry.preset).two_stages
    if two:
        train_row(FIRST, seed, runs, options)
    values = {
        "preset": entry.preset,
        "seed": seed,
        "start": str(folder / FIRST if two else runs / PHOTO),
        "epochs": whole // 2 if two or name == FIRST else whole,
    }
    config = read_config(find_recipe(RECIPE), merged(merged(options, values), entry.options))
    started = time.process_time()
    if not (folder / name / "finished.json").is_file():
        trained(config, folder / name)
        write_json(folder / name / COST, {"CPU seconds": round(time.process_time() - started)})


def named(data: Dataset, model: SceneModel, file: Path) -> list[SceneGraph]:
    """Images with a photo, with the label distributions of the model's photo network, which `file` keeps."""
    if not file.is_file():
        write_distributions(file, photographed(model, data))
    known = read_distributions(file).number
    places = [i for i in range(len(data)) if image_key(data[i]) in known]
    return list(attach_distributions(data[places], file))


def score_model(
    model: SceneModel | None, images: Mapping[str, Sequence[SceneGraph]], zero_shot: ZeroShot
) -> dict[str, NDArray[np.float64]]:
    """`set, task, figure` -> the figure and its bootstrap replicates, ``(1 + B,)``; without a model labels alone."""
    out = {}
    for title, tasks in SETS.items():
        graphs = images[title]
        for task in tasks if model is not None else ():
            plan = Plan(Protocol(task, data=title), graphs[0].vocabulary, zero_shot, bootstrap=REPLICATES)
            found = list(predictions(model, graphs, task))
            result = RecallState(plan).update(found, graphs).result()
            for name in FIGURES:
                out[f"{title}, {task}, {name}"] = np.concatenate([[result.figures[name]], result.replicates[name]])
            if task == "sgcls":
                out |= _labels(title, found, graphs)
        if model is None and "sgcls" in tasks:
            out |= _labels(title, graphs, graphs)
    return out


def _labels(title: str, found: Sequence[SceneGraph], graphs: Sequence[SceneGraph]) -> dict[str, NDArray[np.float64]]:
    counts = count_labels(found, graphs)
    rows = np.concatenate([counts.shares[None], counts.replicates()])
    return {f"{title}, sgcls, {name}": rows[:, k] for k, name in enumerate(LABELS)}


def score(runs: Path, options: argparse.Namespace) -> None:
    """Scores what has not been scored yet."""
    aside = read_config(find_recipe(RECIPE), {}).data.validation
    train = open_dataset(options.data, "train", validation=aside or 0)
    zero_shot, ships = ZeroShot.from_training(train), load_model(SHIPPED).labels_only()
    tests = open_dataset(options.data, "test", images=options.photos)
    every = open_dataset(options.all_boxes, images=options.all_photos)
    photos = named(tests.drop_empty(), ships, runs / "test.npz"), named(every.drop_empty(), ships, runs / "all.npz")
    images = dict(zip(SETS, (*photos, list(tests), list(every)), strict=True))
    fixed = {FREQ: lambda: freq_model(train), SHIPPED: lambda: ships, LABELS_ALONE: lambda: None}
    finished = {
        path.parent: str(path.parent / "model")
        for seed in options.seeds
        for path in sorted(runs.glob(f"seed{seed}/*/finished.json"))
    }
    first = {runs / name: name for name in fixed} if 0 in options.seeds else {}
    for folder, name in {**first, **finished}.items():
        file = folder / SCORES
        if file.is_file():
            continue
        print(f"scoring {folder}", flush=True)
        model = fixed[name]() if name in fixed else load_model(name)
        folder.mkdir(exist_ok=True)
        with whole_file(file) as part, part.open("wb") as handle:
            np.savez(handle, **score_model(model, images, zero_shot))


class Scores(NamedTuple):
    """`set, task, figure` -> ``(S, 1 + B)`` of the seeds, and the CPU seconds that a seed took to train."""

    seeds: list[int]
    rows: dict[str, NDArray[np.float64]]
    cost: float | None

    def drawn(self, key: str, only: Sequence[int] | None = None) -> NDArray[np.float64]:
        """The mean over the seeds, and that of seeds drawn with replacement for each replicate: ``(1 + B,)``."""
        some = self.rows[key][[self.seeds.index(seed) for seed in only or self.seeds]]
        which = np.random.default_rng(0).integers(len(some), size=(some.shape[1], len(some)))
        which[0] = np.arange(len(some))
        return np.asarray(some[which, np.arange(some.shape[1])[:, None]].mean(1))


def stored(runs: Path) -> Iterator[tuple[str, Scores]]:
    """Name -> scores of all seeds that are there."""
    for name in (FREQ, SHIPPED, LABELS_ALONE, *ROWS):
        fixed = runs / name / SCORES
        files = {int(path.parts[-3][4:]): path for path in sorted(runs.glob(f"seed*/{name}/{SCORES}"))}
        files |= {0: fixed} if fixed.is_file() else {}
        if files:
            each = [dict(np.load(file)) for file in files.values()]
            costs = [read_object(p.parent / COST)["CPU seconds"] for p in files.values() if (p.parent / COST).is_file()]
            rows = {key: np.stack([scores[key] for scores in each]) for key in each[0]}
            yield name, Scores(list(files), rows, float(np.mean(costs)) if costs else None)


def triple(values: NDArray[np.float64]) -> list[float | None]:
    """In percent: the figure, then low and high of its interval; None where there was nothing to count."""
    return [percent(x) for x in (values[0], *percentile_interval(values[1:]))]


def gain(of: Scores, over: Scores | None, key: str) -> list[float | None] | None:
    """Paired, over the seeds that both have; a row without seeds is paired with all of the other's."""
    if over is None or key not in of.rows or key not in over.rows:
        return None
    both = [seed for seed in of.seeds if seed in over.seeds] if of.cost is not None else None
    return triple(of.drawn(key, both) - over.drawn(key, both))


def report(runs: Path, over: str = BASELINE) -> dict[str, Any]:
    """Prints the tables, with gains over one row, and gives them for JSON."""
    found = dict(stored(runs))
    out: dict[str, Any] = {"protocol": f"{__doc__.splitlines()[0]} In percent: figure, low, high.", "sets": {}}
    out["rows"] = {name: {"seeds": s.seeds, "CPU seconds": s.cost and round(s.cost)} for name, s in found.items()}
    for title, tasks in SETS.items():
        for task in tasks:
            columns = [*(LABELS if task == "sgcls" else ()), *SHOWN]
            names: dict[str, Any] = {}
            for name, scores in found.items():
                keys = {figure: f"{title}, {task}, {figure}" for figure in columns}
                entry = {k: triple(scores.drawn(key)) for k, key in keys.items() if key in scores.rows}
                if not entry:
                    continue
                alone = found.get(ROWS[name].alone or "") if name in ROWS else None
                each = {over: found.get(over), "own form": alone}
                gains = {
                    k: {n: x for n in GAINS if n in keys and (x := gain(scores, row, keys[n]))}
                    for k, row in each.items()
                    if k != name
                }
                seeds = len(scores.seeds) if name in ROWS else None
                names[name] = {"seeds": seeds, "figures": [entry.get(k) for k in columns], "gain over": gains}
            _print(f"{title}, {task}", columns, names, over)
            out["sets"][f"{title}, {task}"] = {"columns": columns, "rows": names}
    return out


def _print(title: str, columns: Sequence[str], names: Mapping[str, Any], over: str) -> None:
    """Two tables: figures, with the intervals of WHOLE and of gains in R@50, and gains in all of GAINS."""
    shown = [name for name in PRINTED if name in columns]
    print(f"\n**{title}**\n\n| | seeds | {' | '.join(shown)} | gain in R@50 | over its own form |")
    print("|---|" + "---:|" * (len(shown) + 3))
    each = (over, "own form")
    for name, entry in names.items():
        values = dict(zip(columns, entry["figures"], strict=True))
        cells = [_cell(values[k], whole=k in WHOLE) for k in shown]
        cells += [_cell(entry["gain over"].get(k, {}).get("R@50"), "+", True) for k in each]
        print(f"| {name} | {entry['seeds'] or ''} | {' | '.join(cells)} |")
    kinds = [k for k in GAINS if k in columns]
    print(f"\n| gain over | {' | '.join(f'{k}: {column}' for k in each for column in kinds)} |")
    print("|---|" + "---:|" * (len(kinds) * len(each)))
    for name, entry in names.items():
        cells = [_cell(entry["gain over"].get(k, {}).get(column), "+", True) for k in each for column in kinds]
        if any(cells):
            print(f"| {name} | {' | '.join(cells)} |")


def _cell(values: Sequence[float | None] | None, sign: str = "", whole: bool = False) -> str:
    """A figure, with its interval if `whole`."""
    if values is None or None in values:
        return ""
    figure, low, high = values
    return f"{figure:{sign}.1f} [{low:{sign}.1f}, {high:{sign}.1f}]" if whole else f"{figure:{sign}.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["train", "score", "print"])
    parser.add_argument("runs", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--all-boxes", type=Path)
    parser.add_argument("--all-photos", type=Path)
    parser.add_argument("--words", type=Path, help="word vectors instead of those in the package")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--over", default=BASELINE, choices=list(ROWS), help="the row that gains are over")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.what == "train":
        where = {"path": options.data, "photos": options.photos, "words": options.words}
        for seed in options.seeds:
            for name in options.rows:
                train_row(name, seed, options.runs, {"data": {k: str(v) for k, v in where.items() if v is not None}})
    elif options.what == "score":
        score(options.runs, options)
    else:
        made = report(options.runs, options.over)
        if options.json:
            write_json(options.json, made)


if __name__ == "__main__":
    main()
