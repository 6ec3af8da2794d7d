"""How much of what people annotated does a finder find? Recall of boxes, SGDet, and speed, on the same photos.

    python benchmarks/finder.py --data VG150 [--photos DIR] [--split test] [--finder NAME ...] [--model MODEL]

Of the annotated boxes: the share that one of a photo's 5, 10, 20 best boxes overlaps by half (IoU >= 0.5, pixels
inclusively), with any label, and with its own (a detector's names mapped to the data set's by the reviewed table).
"boxes" is how many a finder reports at its own floor, "as used" the recall with those, at most 20. SGDet: relations of
the model on what is found above 0.01, graph constraint; annotations are incomplete, so all of these are lower bounds.
Times are of `detect` alone, in CPU milliseconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from scenegpi.boxes import box_iou
from scenegpi.data import Dataset, open_dataset
from scenegpi.files import write_json
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Plan, Protocol, RecallState
from scenegpi.models import SceneModel, load_model
from scenegpi.prediction import Item, PredictOptions, Predictor
from scenegpi.prediction.finding import OWN, UNION, load_finder
from scenegpi.progress import watched
from scenegpi.vision.config import FinderConfig
from scenegpi.vision.detect import DEFAULT, Detections, Detector
from scenegpi.vision.find import Finder, single, worth_reporting
from scenegpi.vision.photos import open_photo, photo_boxes
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.label_map import LabelMap

BUDGETS = (5, 10, 20)
LOW = 0.01
"""The floor below which nothing is looked at for recall at a number of boxes; nor are boxes of one label suppressed."""


def lowered(name: str, model: SceneModel) -> tuple[Detector, Callable[[Detections], np.ndarray]]:
    """A finder that reports what it is hardly sure of, and what tells which of its boxes it reports otherwise."""
    found: Any = load_finder(name, model)
    if isinstance(found, Finder):
        own = found.config

        def used(d: Detections) -> np.ndarray:
            score = torch.from_numpy(d.scores)
            stays = single(torch.from_numpy(d.boxes), score, torch.from_numpy(d.labels), own.same_label)
            sure = d.scores / np.maximum(np.asarray(d.label_dist).max(axis=1, initial=0.0), 1e-9)
            return stays[worth_reporting(torch.from_numpy(sure)[stays], score[stays], own)].numpy()

        low = replace(own, floor=LOW, named_floor=0.0, fewest=0, same_label=1.0)
        return Finder(found.vision, low, found.also), used
    floor, found.floor = found.floor, LOW
    return found, lambda d: np.flatnonzero(d.scores >= floor)


def recalls(
    truth: SceneGraph, boxes: np.ndarray, found: Detections, numbers: np.ndarray, kept: np.ndarray
) -> tuple[int, int]:
    """How many boxes of an image some of the detections at `kept` meet: with any label, with their own."""
    if not len(kept) or not len(truth):
        return 0, 0
    meets = box_iou(boxes, found.boxes[kept]) >= 0.5
    same = meets & (truth.labels[:, None] == numbers[kept])
    return int(meets.any(1).sum()), int(same.any(1).sum())


def measure(
    detector: Detector,
    used: Callable[[Detections], np.ndarray],
    data: Sequence[tuple[Path, SceneGraph]],
    vocabulary: Vocabulary,
) -> dict[str, Any]:
    """All figures but SGDet."""
    labels = LabelMap.between(Vocabulary(tuple(detector.names)), vocabulary, threshold=2)
    targets = [labels[name].target for name in detector.names]
    number = np.array([-1 if word is None else vocabulary.object_index[word] for word in targets])
    sums = {key: np.zeros(2) for key in (*map(str, BUDGETS), "as used")}
    total, seconds, reported = 0, 0.0, 0
    for path, truth in watched(data, "photos"):
        photo = open_photo(path)
        start = time.process_time()
        found = detector.detect(photo)
        seconds += time.process_time() - start
        boxes, numbers = photo_boxes(truth, photo), number[found.labels]
        total += len(truth)
        own = used(found)
        reported += len(own)
        for key, kept in (*((str(k), np.arange(min(k, len(found)))) for k in BUDGETS), ("as used", own[:20])):
            sums[key] += recalls(truth, boxes, found, numbers, kept)
    figures: dict[str, Any] = {
        key: [round(100 * float(each) / total, 1) for each in pair] for key, pair in sums.items()
    }
    figures |= {"boxes a photo": round(reported / len(data), 1), "CPU ms": round(1000 * seconds / len(data), 1)}
    return {"photos": len(data), "annotated boxes": total, **figures}


def sgdet(
    model: SceneModel, detector: Detector, data: Sequence[tuple[Path, SceneGraph]], title: str
) -> dict[str, float]:
    """R@20, 50, 100 of the model on the boxes of a finder."""
    options = PredictOptions(top=100, min_relation=0.0, informative=0.0, tidy=False)
    predictor = Predictor(model, detector, options)
    plan = Plan(Protocol("sgdet", constraint="graph", data=title), model.vocabulary)
    state = RecallState(plan)
    for prediction, (_, truth) in zip(
        predictor.stream(Item(path) for path, _ in watched(data, "SGDet")), data, strict=True
    ):
        if prediction.graph is None:
            raise SystemExit(prediction.problem)
        graph = prediction.graph  # in pixels of a photo that may have another size than the image of the annotations
        scale = [graph.width / truth.width, graph.height / truth.height] * 2  # type: ignore[operator]
        state.update([graph], [truth.replace(boxes=truth.boxes * scale, width=graph.width, height=graph.height)])
    found = state.result().figures
    return {key: round(100 * found[key], 1) for key in ("R@20", "R@50", "R@100")}


def photos_of(dataset: Dataset, limit: int | None) -> list[tuple[Path, SceneGraph]]:
    data = dataset.drop_empty()
    return [(path, data[i]) for i in range(len(data)) if (path := data.image_path(i)) is not None][:limit]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--split")
    parser.add_argument("--validation", type=int, default=0, help="number of training images that are validation")
    parser.add_argument("--finder", nargs="*", default=[OWN, DEFAULT, UNION + DEFAULT])
    parser.add_argument("--model", default="vg150-photo")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--floor", type=float, help="of the packaged finder, to try another")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    model = load_model(options.model)
    if options.floor is not None and model.vision is not None:
        config = model.vision.config
        model.vision.config = replace(config, finder=replace(config.finder or FinderConfig(), floor=options.floor))
    dataset = open_dataset(options.data, options.split, images=options.photos, validation=options.validation)
    data = photos_of(dataset, options.limit)
    report: dict[str, Any] = {"command": "benchmarks/finder.py", "data": options.data.name, "split": options.split}
    for name in options.finder:
        detector, used = lowered(name, model)
        found = measure(detector, used, data, dataset.vocabulary)
        if dataset.vocabulary == model.vocabulary:
            found["SGDet"] = sgdet(model, detector, data, options.data.name)
        report[name] = found
        print(name, found, flush=True)
    if options.json:
        write_json(options.json, report)


if __name__ == "__main__":
    main()
