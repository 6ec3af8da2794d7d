"""What was tried for the photos of VRD: label predictors, then contexts, each change alone, one seed.

    python benchmarks/vrd_tried.py --data VRD --runs RUNS [--cache LOOKS] [--words WORDS] [--json FILE]

The photos of the training part of fold 0 (see `vrd_photos.py`) are dealt into quarters. In turn each of --quarters is
predicted by models that were trained on the others; the figures are over all photos that were predicted. The photos of
fold 0 itself are not looked at. A label predictor costs two minutes of a core (the photos go through the backbone once
for each way of looking, and are kept in --cache), a context two or three a quarter. What RUNS holds is not made again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from scenegpi.data import open_dataset
from scenegpi.files import read_object
from scenegpi.training.folder import write_json
from scenegpi.vision.cache import photo_looks
from scenegpi.vision.config import FitOptions, HeadConfig, LookConfig, VisionConfig
from scenegpi.vision.fit import fit_vision
from seed_rows import BASELINE
from vrd_folds import ROWS, Photos, Row, Setup, deal, fit_fold, open_photos, train_row
from vrd_photos import LabelCounts, Scores, count_labels, score, table

CROP, LINEAR = LookConfig(nodes="crop"), HeadConfig(hidden=0)
HEAD_ONLY = LookConfig(nodes="crop", crop_layers=("head",))
SMALLER_BATCHES = FitOptions(batch=64, rate=1e-3)
WIDE = HeadConfig(hidden=1024, dropout=0.7, input_dropout=0.6)
LABELS: dict[str, tuple[VisionConfig, FitOptions]] = {
    "crop of 160 pixels, last map; logistic, without the box's place": (
        VisionConfig(HEAD_ONLY, HeadConfig(hidden=0, layout=False)),
        FitOptions(),
    ),
    "crop, last map; logistic": (VisionConfig(HEAD_ONLY, LINEAR), FitOptions()),
    "crop, last map": (VisionConfig(HEAD_ONLY), FitOptions()),
    "crop, last and middle map": (VisionConfig(CROP), FitOptions()),
    "crop, 224 pixels": (VisionConfig(LookConfig(nodes="crop", crop_size=224)), FitOptions()),
    "crop, a margin of 60%": (VisionConfig(LookConfig(nodes="crop", margin=0.6)), FitOptions()),
    "crop, averaged with its mirror image": (VisionConfig(LookConfig(nodes="crop", flip=True)), FitOptions()),
    "crop and the mean of the whole photo": (VisionConfig(LookConfig(nodes="crop", scene=True)), FitOptions()),
    "crop, batches of 64": (VisionConfig(CROP), SMALLER_BATCHES),
    "RoIAlign of the whole photo's middle map, 2 x 2": (VisionConfig(LookConfig(nodes="roi")), FitOptions()),
    "crop and RoIAlign (both)": (VisionConfig(), FitOptions()),
    "both, 40 epochs": (VisionConfig(), FitOptions(epochs=40)),
    "both, smoothed labels": (VisionConfig(), FitOptions(smoothing=0.1)),
    "both, 1,024 hidden units, more dropout": (VisionConfig(head=WIDE), FitOptions()),
    "both, batches of 64": (VisionConfig(), SMALLER_BATCHES),
}
FEATURE = "gpi-feature-attention"
CONTEXTS: dict[str, Row] = {
    BASELINE: ROWS[BASELINE],
    "feature attention": ROWS[FEATURE],
    "2 steps": Row(FEATURE, {"steps": 2}),
    "pairs not read again": Row(FEATURE, {"read_again": False}),
    "no boxes left out": Row(FEATURE, run={"augment": {"drop": 0.0}}),
    "photos once an epoch": Row(FEATURE, run={"augment": {"photos": 1}}),
    "less dropout": Row(FEATURE, {"dropout": 0.2, "input_dropout": 0.1}),
    "12 epochs": Row(FEATURE, run={"optim": {"epochs": 12}}),
    "batches of 16": Row(FEATURE, run={"optim": {"batch": 16, "learning_rate": 1e-3}}),
    "pairs learn as fast as labels": Row(FEATURE, run={"optim": {"pair_rate": 1.0}}),
    "word vectors, neighbour attention": ROWS["gpi-linguistic"],
    "baseline, pair looks": Row(BASELINE, pair_looks=True),
    "2 steps, pair looks": Row(FEATURE, {"steps": 2}, base="baseline, pair looks", pair_looks=True),
}


def part_of(images: Photos) -> Photos:
    """The photos that are not in fold 0 and show boxes."""
    fold = deal(len(images.graphs), 5)
    kept = [i for i, graph in enumerate(images.graphs) if fold[i] and len(graph)]
    return Photos(images.layouts, [images.graphs[i] for i in kept], [images.paths[i] for i in kept])


def try_labels(name: str, images: Photos, quarter: NDArray[np.int64], chosen: list[int], cache: Path) -> list[float]:
    """Top-1 and top-5 of a label predictor, in percent."""
    config, options = LABELS[name]
    counts = []
    for q in chosen:
        train = np.flatnonzero(quarter != q).tolist()
        photos, graphs = [images.paths[i] for i in train], [images.graphs[i] for i in train]
        model = fit_vision(config, graphs[0].vocabulary, photos, graphs, cache, folds=0, options=options).model
        for i in np.flatnonzero(quarter == q).tolist():
            graph = images.graphs[i]
            dist = model.label_dist(photo_looks(model.extractor, images.paths[i], graph, cache), graph)
            counts.append(count_labels([graph.replace(label_dist=dist)], [graph]).rows)
    return [round(100 * float(share), 2) for share in LabelCounts(np.concatenate(counts)).shares]


def try_contexts(
    names: list[str],
    images: Photos,
    quarter: NDArray[np.int64],
    chosen: list[int],
    runs: Path,
    cache: Path,
    setup: Setup,
) -> dict[str, Any]:
    """Labels, SGCls and PredCls of every name, for JSON."""
    heads, scores = [], {}
    for q in chosen:
        seen = fit_fold(images, quarter != q, runs / f"quarter{q}", cache, setup)
        truth = [image.graph for image in seen.of(quarter == q, False)]
        heads.append(count_labels(truth, truth).rows)
        for name in names:
            row = CONTEXTS[name]
            model = train_row(name, row, images.layouts, seen, quarter != q, runs / f"quarter{q}", setup)
            found = score(model, seen.of(quarter == q, row.pair_looks))
            scores[name] = scores[name].join(found) if name in scores else found
            print(f"quarter {q}, {name}: {_line(scores[name])}", flush=True)
    return table(scores, LabelCounts(np.concatenate(heads)))


def show(found: dict[str, Any]) -> None:
    """Prints both tables."""
    if found.get("label predictors"):
        print("\n| label predictor | top-1 | top-5 |\n|---|---:|---:|")
        for name, (first, five) in found["label predictors"].items():
            print(f"| {name} | {first:.1f} | {five:.1f} |")
    if found.get("contexts"):
        rows = found["contexts"]
        print("\n| | top-1 | gain | SGCls R@50 | gain | PredCls R@50 | gain |\n|---|---:|---:|---:|---:|---:|---:|")
        for name in rows["sgcls"]:
            cells = [_cell(rows[task][name], key) for task, key in _SHOWN]
            print(f"| {name} | {' | '.join(cells)} |")


_SHOWN = (("labels", "top-1"), ("sgcls", "R@50"), ("predcls", "R@50"))


def _cell(entry: dict[str, Any], key: str) -> str:
    gain = entry.get("gain", {}).get(key)
    text = "" if gain is None else f"{gain[0]:+.2f} [{gain[1]:+.2f}, {gain[2]:+.2f}]"
    return f"{entry['figures'][key]:.1f} | {text}"


def _line(found: Scores) -> str:
    figures = {task: result.figures["R@50"] for task, result in found.results().items()}
    recall = ", ".join(f"{task} R@50 {100 * value:.2f}" for task, value in figures.items())
    return f"top-1 {100 * found.labels.shares[0]:.2f}, {recall}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--cache", type=Path, help="folder of looks")
    parser.add_argument("--words", type=Path, help="word vectors (`scenegpi words train`); without, no row with them")
    parser.add_argument("--labels", nargs="*", choices=list(LABELS), default=list(LABELS))
    parser.add_argument("--contexts", nargs="*", choices=list(CONTEXTS), default=list(CONTEXTS))
    parser.add_argument("--quarters", type=int, nargs="+", default=[0, 1], choices=range(4))
    parser.add_argument("--epochs", type=int, help="of every context, to try the command")
    parser.add_argument("--json", type=Path, help="where the tables are kept; label predictors that it holds stay")
    options = parser.parse_args()
    torch.set_num_threads(1)
    images = part_of(open_photos(open_dataset(options.data)))
    quarter, cache = deal(len(images.graphs), 4), options.cache or options.runs / "looks"
    known = read_object(options.json) if options.json and options.json.is_file() else {}
    found: dict[str, Any] = {"command": "benchmarks/vrd_tried.py", "seed": 0}
    found |= {key: dict(known.get(key, {})) for key in ("quarters", "label predictors", "contexts")}
    labels = found["label predictors"] if found["quarters"].get("label predictors") == options.quarters else {}
    for name in options.labels:
        if name not in labels:
            labels[name] = try_labels(name, images, quarter, options.quarters, cache)
            print(f"{name}: top-1 {labels[name][0]:.2f}, top-5 {labels[name][1]:.2f}", flush=True)
    if options.labels:
        found["label predictors"] = {name: labels[name] for name in LABELS if name in labels}
        found["quarters"]["label predictors"] = options.quarters
    if options.contexts:
        bases = [BASELINE, *(CONTEXTS[name].base for name in options.contexts)]
        wanted = dict.fromkeys([*bases, *options.contexts])
        names = [name for name in wanted if options.words or CONTEXTS[name].preset != "gpi-linguistic"]
        setup = Setup("crop", options.words, options.epochs)
        found["contexts"] = try_contexts(names, images, quarter, options.quarters, options.runs, cache, setup)
        found["quarters"]["contexts"] = options.quarters
    show(found)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        write_json(options.json, found)


if __name__ == "__main__":
    main()
