"""Which boxes and relations are worth reporting? Floors of the packaged finder, compared on validation photos.

    python benchmarks/finder_floors.py --data VG150 --photos DIR [--validation 1291] [--model MODEL] [--limit N]

First, slope and offset that make of the finder's logits the chance that a box is annotated; where all boxes are listed,
an image has 1.56 times as many (log 1.56 = 0.44 more). Then for each floor of the finder, each number of boxes that are
reported whatever the floors say, and each least score of a relation: how many triplets a photo gets, the share of
graphs without any, and how many of the triplets meet the annotations: both ends overlap a box of their label by half
("ends"), and their relation is annotated, too ("all"). A "person" is also who is annotated as a man or a woman. Before
that, how often a kind of person is the annotated one, by its share of P(person): what `scenegpi.words.kinds.SURE` rests
on. Annotations list a part of what is there, so these are lower bounds; they serve to compare floors, not to say how
often a graph is right (benchmarks/judged.py).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from finder import photos_of
from scenegpi.boxes import box_iou
from scenegpi.data import open_dataset
from scenegpi.graph import SceneGraph
from scenegpi.metrics.calibration import fit_convex
from scenegpi.models import load_model
from scenegpi.prediction import PredictOptions, Predictor
from scenegpi.prediction.finding import found_graph
from scenegpi.progress import watched
from scenegpi.vision.config import FinderConfig
from scenegpi.vision.find import Finder, worth_reporting
from scenegpi.vision.photos import open_photo
from scenegpi.words.kinds import kinds_of

LOWEST = 0.01
FLOORS = (0.05, 0.15, 0.3)
FEWEST = (0, 2, 3, 4)
NAMED = (0.04, 0.1)
SHARES = (0.0, 0.4, 0.5, 0.6, 0.7, 1.0)
RELATIONS = (0.002, 0.005, 0.01, 0.02, 0.05)


def met(graph: SceneGraph, truth: SceneGraph) -> tuple[int, int]:
    """How many triplets of a graph have both ends, and how many are annotated as they are."""
    if not len(graph.relations) or not len(truth):
        return 0, 0
    kinds = kinds_of(truth.vocabulary)
    broad = truth.labels if kinds is None else kinds.broad[truth.labels]
    named = (graph.labels[:, None] == truth.labels) | (graph.labels[:, None] == broad)
    same = (box_iou(graph.boxes, truth.boxes) >= 0.5) & named
    known = {tuple(row) for row in truth.relations.tolist()}
    ends = exact = 0
    for s, o, p in graph.relations.tolist():
        subjects, objects = np.flatnonzero(same[s]), np.flatnonzero(same[o])
        ends += bool(len(subjects) and len(objects))
        exact += any((int(a), int(b), p) in known for a in subjects for b in objects)
    return ends, exact


def fitted(found: Sequence[SceneGraph], truths: Sequence[SceneGraph], config: FinderConfig) -> tuple[float, float]:
    """Slope and offset that make of the finder's logits the chance that a box is annotated."""
    sure = np.concatenate([np.asarray(graph.scores) for graph in found]).clip(1e-9, 1 - 1e-9)
    logit = torch.from_numpy((np.log(sure / (1 - sure)) - config.offset) / config.slope)
    pairs = zip(found, truths, strict=True)
    met = [(box_iou(graph.boxes, truth.boxes) >= 0.5).any(1) for graph, truth in pairs]
    target = torch.from_numpy(np.concatenate(met)).double()
    image = torch.arange(len(found)).repeat_interleave(torch.tensor([len(graph) for graph in found]))

    def loss(weights: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(weights[0] * logit + weights[1], target, reduction="none")

    slope, offset = fit_convex(loss, (config.slope, config.offset), image)
    return slope, offset


def kinds_right(found: Sequence[SceneGraph], truths: Sequence[SceneGraph]) -> str:
    """A table: of boxes that overlap an annotated person, how often the most probable kind is the annotated one."""
    rows = []
    for graph, truth in zip(found, truths, strict=True):
        kinds = kinds_of(truth.vocabulary)
        if kinds is None or not len(graph) or not len(truth):
            continue
        overlap, dist = box_iou(graph.boxes, truth.boxes), np.asarray(graph.label_dist)
        label, true = dist.argmax(axis=1), truth.labels[overlap.argmax(axis=1)]
        share = dist[np.arange(len(dist)), label] / (dist * kinds.members[label]).sum(axis=1)
        people = (overlap.max(axis=1) >= 0.5) & (kinds.broad[label] != label) & (kinds.broad[true] != true)
        rows.append(np.column_stack([share, label == true])[people])
    rows_of = np.concatenate(rows) if rows else np.zeros((0, 2))
    lines = ["| share of the kind | boxes | kind right % |", "|---|---:|---:|"]
    for low, high in pairwise(SHARES):
        some = rows_of[(rows_of[:, 0] >= low) & (rows_of[:, 0] < high)]
        lines.append(f"| {low} to {high:g} | {len(some)} | {100 * some[:, 1].mean() if len(some) else 0:.0f} |")
    return "\n".join(lines)


def row(found: Sequence[SceneGraph], truths: Sequence[SceneGraph], least: float) -> str:
    """A line of the table, with relations that score at least so much."""
    triplets = empty = ends = exact = 0
    for graph, truth in zip(found, truths, strict=True):
        kept = np.array([k for k, t in enumerate(graph.triplets()) if t.score >= least], dtype=int)
        cut = graph.replace(relations=graph.relations[kept], relation_scores=np.asarray(graph.relation_scores)[kept])
        a, b = met(cut, truth)
        triplets, empty, ends, exact = triplets + len(kept), empty + (not len(kept)), ends + a, exact + b
    n = len(found)
    shares = [100 * each / max(triplets, 1) for each in (ends, exact)]
    return f"{triplets / n:.1f} | {100 * empty / n:.1f} | {shares[0]:.1f} | {shares[1]:.1f}"


def above(graph: SceneGraph, floors: FinderConfig) -> SceneGraph:
    """The boxes that are reported by these floors."""
    sure, dist = np.asarray(graph.scores), np.asarray(graph.label_dist)
    chance = torch.from_numpy(sure * dist.max(axis=1, initial=0.0))
    return graph.subset(np.flatnonzero(worth_reporting(torch.from_numpy(sure), chance, floors).numpy()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--validation", type=int, default=1291)
    parser.add_argument("--model", default="vg150-photo")
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    model = load_model(options.model)
    assert model.vision is not None
    dataset = open_dataset(options.data, "val", images=options.photos, validation=options.validation)
    data = photos_of(dataset, options.limit)
    config = model.vision.config.finder or FinderConfig()
    low = Finder(model.vision, replace(config, floor=LOWEST, named_floor=0.0, fewest=0))
    seen = [found_graph(low.detect(open_photo(path)), model.vocabulary) for path, _ in watched(data, "photos")]
    # Photos may have another size than the image that boxes refer to.
    truths = [
        truth.replace(boxes=truth.boxes * ([g.width / truth.width, g.height / truth.height] * 2))
        for (_, truth), g in zip(data, seen, strict=True)
    ]
    slope, offset = fitted(seen, truths, config)
    print(f"the chance that a box is annotated: slope {slope:.3f}, offset {offset:.3f}\n", flush=True)
    print(kinds_right([above(graph, config) for graph in seen], truths), flush=True)
    predictor = Predictor(model, options=PredictOptions(min_relation=min(RELATIONS)))
    print("| floor | named | fewest | relation | triplets per photo | empty % | ends % | all % |")
    print("|---|---|---|---|---|---|---|---|")
    for floor, named, fewest in product(FLOORS, NAMED, FEWEST):
        floors = replace(config, floor=floor, named_floor=named, fewest=fewest, last_floor=min(FLOORS))
        graphs = [above(graph, floors) for graph in seen]
        found = [each.graph for each in predictor.stream(graphs) if each.graph is not None]
        for least in RELATIONS:
            print(f"| {floor} | {named} | {fewest} | {least} | {row(found, truths, least)} |", flush=True)


if __name__ == "__main__":
    main()
