"""Labels and relations of real photos, VRD: five-fold cross-validation by photo, with and without context.

    python benchmarks/vrd_photos.py --data VRD --runs RUNS [--cache LOOKS] [--words WORDS] [--json FILE]

The photos of VRD (official test images) are dealt into folds. For each fold a label predictor is trained on the other
photos; the graph models are trained on what it says of those photos, held out (see `scenegpi.vision.fit`), and on the
4,000 annotated images without pixels, with borrowed distributions (see `training.label_resampling`). Then the photos of
the fold are predicted from their pixels. Every photo is tested once; a figure over all folds is over all photos.

    RUNS/looks/                what the backbone shows of each photo, unless --cache is another folder
    RUNS/fold0/vision/         label predictor and held-out distributions of the other photos
    RUNS/fold0/baseline/       a run of `scenegpi train`, and so on for each row

What RUNS holds already is not made again. One process, one thread. 95% intervals by bootstrap over photos; gains are
paired with the baseline. --ship FOLDER trains one row on all photos and writes its model,
with the figures of --json on its card.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from scenegpi.data import open_dataset
from scenegpi.features.batch import Seen
from scenegpi.files import read_object
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Plan, Protocol, RecallState, Result
from scenegpi.metrics.intervals import percentile_interval, poisson_weights
from scenegpi.models import load_model
from scenegpi.models.predict import predict_seen
from scenegpi.training.folder import write_json
from seed_rows import BASELINE, Row, plain_rows
from vrd_folds import EYES, ROWS, Setup, deal, fit_fold, open_photos, ship, train_row

SHOWN = ["R@20", "R@50", "R@100", "mR@50"]
TASKS = ("sgcls", "predcls")
HEAD = "label predictor alone"
REPLICATES = 1000
BY_FOLD = "gpi-feature-attention, 2 steps"
"""The row that is shown fold by fold."""


class LabelCounts(NamedTuple):
    """(n, 3) of each photo: boxes, labels right, label among the first five."""

    rows: NDArray[np.float64]

    @property
    def shares(self) -> NDArray[np.float64]:
        """(2,) top-1 and top-5."""
        total = self.rows.sum(0)
        return np.asarray(total[1:] / total[0])

    def replicates(self) -> NDArray[np.float64]:
        """(B, 2) of bootstrap over photos; the same photos get the same weights in every system."""
        weights = poisson_weights(np.arange(len(self.rows), dtype=np.uint64), REPLICATES).astype(np.float64)
        total = weights.T @ self.rows
        with np.errstate(invalid="ignore"):  # a replicate of few photos may hold none
            return np.asarray(total[:, 1:] / total[:, :1])


def count_labels(found: Sequence[SceneGraph], truth: Sequence[SceneGraph]) -> LabelCounts:
    """By the distributions of `found`."""
    rows = []
    for graph, true in zip(found, truth, strict=True):
        order = np.argsort(-np.asarray(graph.label_dist), axis=1, kind="stable")[:, :5]
        hit = order == true.labels[:, None]
        rows.append((len(true), hit[:, 0].sum(), hit.any(1).sum()))
    return LabelCounts(np.array(rows, dtype=np.float64).reshape(-1, 3))


def label_entry(counts: LabelCounts, base: LabelCounts | None) -> dict[str, Any]:
    """For JSON, in percent: top-1 and top-5, their intervals, and the paired gain over the baseline."""
    spread, names = counts.replicates(), ("top-1", "top-5")
    entry: dict[str, Any] = {
        "figures": {name: _percent(value) for name, value in zip(names, counts.shares, strict=True)},
        "intervals": {name: [_percent(e) for e in percentile_interval(spread[:, k])] for k, name in enumerate(names)},
    }
    if base is not None:
        more = spread - base.replicates()
        entry["gain"] = {
            name: [_percent(counts.shares[k] - base.shares[k]), *map(_percent, percentile_interval(more[:, k]))]
            for k, name in enumerate(names)
        }
    return entry


class Scores(NamedTuple):
    """One row, on one fold or on several: labels, and a state of recall for each task."""

    labels: LabelCounts
    recall: dict[str, RecallState]

    def join(self, other: Scores) -> Scores:
        """Both, over the photos of both."""
        together = {task: self.recall[task] + other.recall[task] for task in self.recall}
        return Scores(LabelCounts(np.concatenate([self.labels.rows, other.labels.rows])), together)

    def results(self) -> dict[str, Result]:
        return {task: state.result() for task, state in self.recall.items()}


def score(model: Path, test: Sequence[Seen]) -> Scores:
    """A model on photos whose graphs carry the label predictor's distributions."""
    loaded, truth = load_model(model), [image.graph for image in test]
    found = {task: list(predict_seen(loaded, test, task)) for task in TASKS}  # type: ignore[arg-type]
    recall = {}
    for task in TASKS:
        plan = Plan(Protocol(task, data="vrd photos"), loaded.vocabulary, bootstrap=REPLICATES)  # type: ignore[arg-type]
        recall[task] = RecallState(plan).update(found[task], truth)
    return Scores(count_labels(found["sgcls"], truth), recall)


def table(scores: dict[str, Scores], heads: LabelCounts) -> dict[str, Any]:
    """For JSON: labels and both tasks, every row against the baseline."""
    base = scores[BASELINE]
    labels = {HEAD: label_entry(heads, base.labels)}
    labels |= {n: label_entry(s.labels, base.labels if n != BASELINE else None) for n, s in scores.items()}
    out: dict[str, Any] = {"photos": len(heads.rows), "boxes": int(heads.rows[:, 0].sum()), "labels": labels}
    results = {name: each.results() for name, each in scores.items()}
    for task in TASKS:
        rows = plain_rows({name: Row(each[task], [each[task]]) for name, each in results.items()}, SHOWN)
        first = rows[BASELINE]["figures"]
        for entry in rows.values():
            found = entry["figures"].items()
            entry["relative gain"] = {
                key: round(100 * (value / first[key] - 1), 1) for key, value in found if first[key]
            }
        out[task] = rows
    return out


def show(found: dict[str, Any]) -> None:
    """Prints the tables, as docs/vrd-photos.md has them; of the folds two rows."""
    print(f"\n{found['photos']} photos, {found['boxes']:,} boxes, graph constraint, in percent\n")
    print("| labels | top-1 | gain over `baseline` | top-5 |\n|---|---:|---:|---:|")
    for name, entry in found["labels"].items():
        what = name if name == HEAD else f"`{name}`"
        print(f"| {what} | {_wide(entry, 'top-1')} | {_gain(entry, 'top-1')} | {entry['figures']['top-5']:.1f} |")
    for task, title in zip(TASKS, ("SGCls", "PredCls"), strict=True):
        print(f"\n| {title} | R@20 | R@50 | R@100 | gain in R@50 | relative, R@50 / R@100 |")
        print("|---|---:|---:|---:|---:|---:|")
        for name, entry in found[task].items():
            more = entry["relative gain"]
            share = "" if name == BASELINE else f"{more['R@50']:+.1f}% / {more['R@100']:+.1f}%"
            cells = [f"{entry['figures']['R@20']:.1f}", _wide(entry, "R@50"), _wide(entry, "R@100")]
            print(f"| `{name}` | {' | '.join([*cells, _gain(entry, 'R@50'), share])} |")
    last = BY_FOLD if BY_FOLD in found["sgcls"] else list(found["sgcls"])[-1]
    print(f"\n| fold | photos | label predictor | `baseline` | `{last}` | SGCls R@50 | R@100 | PredCls R@50 |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for k, each in found["folds"].items():
        top1 = [f"{each['labels'][name]['figures']['top-1']:.1f}" for name in (HEAD, BASELINE, last)]
        pairs = [
            _change(each[task], last, key) for task, key in (("sgcls", "R@50"), ("sgcls", "R@100"), ("predcls", "R@50"))
        ]
        print(f"| {k} | {each['photos']} | {' | '.join([*top1, *pairs])} |", flush=True)


def _wide(entry: dict[str, Any], key: str) -> str:
    return "{:.1f} [{:.1f}, {:.1f}]".format(entry["figures"][key], *entry["intervals"][key])


def _gain(entry: dict[str, Any], key: str) -> str:
    return "{:+.2f} [{:+.2f}, {:+.2f}]".format(*entry["gain"][key]) if "gain" in entry else ""


def _change(rows: dict[str, Any], name: str, key: str) -> str:
    return f"{rows[BASELINE]['figures'][key]:.1f} -> {rows[name]['figures'][key]:.1f}"


def card_figures(path: Path, name: str) -> dict[str, Any]:
    """The figures of a row over the folds, as a model card shows them."""
    found = read_object(path)
    out = {}
    for task in TASKS:
        figures = {key: value / 100 for key, value in found[task][name]["figures"].items()}
        what = f"{task}, {len(found['folds'])}-fold cross-validation, graph constraint"
        out[f"{task} of models trained alike on the other folds"] = {
            "figures": figures,
            "images": found["photos"],
            "protocol": what,
        }
    labels = found["labels"][name]["figures"]
    out["label accuracy"] = {"top-1": labels["top-1"] / 100, "top-5": labels["top-5"] / 100, "images": found["photos"]}
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--photos", type=Path, help="folder of the photos, where it is not beside the data")
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--cache", type=Path, help="folder of looks")
    parser.add_argument("--words", type=Path, help="word vectors (`scenegpi words train`); without, no linguistic row")
    parser.add_argument("--looks", choices=list(EYES), default="crop", help="boxes by themselves, or RoIAlign as well")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--only", type=int, nargs="+", help="these folds alone")
    parser.add_argument("--epochs", type=int, help="of every training, to try the command")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--ship", type=Path, help="train the last of --rows on all photos, and write its model here")
    options = parser.parse_args()
    torch.set_num_threads(1)
    setup = Setup(options.looks, options.words, options.epochs)
    names = [BASELINE, *(n for n in options.rows if n != BASELINE and (options.words or "linguistic" not in n))]
    images = open_photos(open_dataset(options.data, images=options.photos))
    cache = options.cache or options.runs / "looks"
    if options.ship:
        known = card_figures(options.json, names[-1]) if options.json and options.json.is_file() else None
        ship(images, options.runs, cache, names[-1], setup, options.ship, known)
        return
    fold = deal(len(images.graphs), options.folds)
    chosen = options.only if options.only is not None else range(options.folds)
    heads: list[LabelCounts] = []
    per_fold: dict[int, dict[str, Scores]] = {k: {} for k in chosen}
    for k in chosen:
        folder = options.runs / f"fold{k}"
        seen = fit_fold(images, fold != k, folder, cache, setup)
        truth = [image.graph for image in seen.of(fold == k, False)]
        heads.append(count_labels(truth, truth))
        for name in names:
            started = time.process_time()
            model = train_row(name, ROWS[name], images.layouts, seen, fold != k, folder, setup)
            per_fold[k][name] = score(model, seen.of(fold == k, ROWS[name].pair_looks))
            top1, r50 = per_fold[k][name].labels.shares[0], per_fold[k][name].results()["sgcls"].figures["R@50"]
            spent = time.process_time() - started
            print(f"fold {k}, {name}: top-1 {100 * top1:.1f}, SGCls R@50 {100 * r50:.1f}; {spent:.0f} s", flush=True)
    found: dict[str, Any] = {"folds": {}, "command": "benchmarks/vrd_photos.py", "seed": 0, "looks": options.looks}
    whole: dict[str, Scores] = {}
    for head, (k, rows) in zip(heads, per_fold.items(), strict=True):
        found["folds"][str(k)] = table(rows, head)
        whole = {name: whole[name].join(each) if name in whole else each for name, each in rows.items()}
    found |= table(whole, LabelCounts(np.concatenate([each.rows for each in heads])))
    show(found)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        write_json(options.json, found)


def _percent(value: float) -> float:
    return round(100 * float(value), 3)


if __name__ == "__main__":
    main()
