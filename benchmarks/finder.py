"""How much of what people annotated does a finder find? Recall of boxes, and speed, on the same photos.

    python benchmarks/finder.py --data VG150 [--photos DIR] [--split NAME] [--finder NAME ...] [--every N]

Of the annotated boxes: the share that one of a photo's 5, 10, 20 best boxes overlaps (IoU, pixels inclusively) by 0.5,
0.7, 0.75, with any label; and by half with its own label (a detector's names mapped to the data set's by the reviewed
table). Boxes are ranked by the chance that there is something; those that show one label twice all count. Annotations
are incomplete, so all of these are lower bounds. Times are of `detect` alone, in CPU milliseconds. SGDet is scored by
`scenegpi eval --task sgdet`. With `--ap`, for data whose labels are complete (COCO), also the mean over the labels of
the average precision at overlap 0.5; a box counts for every label by its chance times P(the names that it may be).
With `--people`, instead: how well `scenegpi predict` tells man, woman, boy and girl, boxes given and boxes found.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scenegpi.boxes import box_iou
from scenegpi.data import Dataset, open_dataset
from scenegpi.evaluation.evaluate import every_candidate
from scenegpi.files import write_json
from scenegpi.graph import SceneGraph
from scenegpi.models import SceneModel, load_model
from scenegpi.prediction import Predictor
from scenegpi.prediction.finding import OWN, load_finder
from scenegpi.progress import watched
from scenegpi.vision.detect import Detector
from scenegpi.vision.photos import open_photo, photo_boxes
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.everyday import may_be
from scenegpi.words.label_map import LabelMap

BUDGETS, OVERLAPS = (5, 10, 20), (0.5, 0.7, 0.75)
PEOPLE = ("man", "woman", "boy", "girl")


def average_precision(detector: Detector, data: Sequence[tuple[Path, SceneGraph]], vocabulary: Vocabulary) -> float:
    """Mean over the labels that occur, in percent, at overlap 0.5: area under precision (made monotone) by recall."""
    labels, names = vocabulary.objects, detector.names
    own = set(labels) <= set(names)
    meant = [{label} if own else set(may_be(label, names)) for label in labels]
    sets = np.array([[name in some for some in meant] for name in names], dtype=float)
    rows: list[list[tuple[float, bool]]] = [[] for _ in labels]
    total = np.zeros(len(labels))
    for path, truth in watched(data, "photos"):
        photo = open_photo(path)
        found = detector.detect(photo)
        said = np.eye(len(names))[found.labels] if found.label_dist is None else found.label_dist
        score = (found.scores if found.sure is None else found.sure)[:, None] * (said @ sets)
        overlap = box_iou(found.boxes, photo_boxes(truth, photo))
        total += np.bincount(truth.labels, minlength=len(labels))
        for k in range(len(labels)):
            left = truth.labels == k
            for i in np.argsort(-score[:, k], kind="stable"):
                if score[i, k] < 0.005:
                    break
                best = np.where(left, overlap[i], 0)
                hit = bool(best.max(initial=0) >= 0.5)
                if hit:
                    left[best.argmax()] = False
                rows[k].append((float(score[i, k]), hit))
    areas = []
    for found_k, count in zip(rows, total, strict=True):
        if count:
            hits = np.cumsum([hit for _, hit in sorted(found_k, key=lambda each: -each[0])])
            precision = np.maximum.accumulate((hits / np.arange(1, len(hits) + 1))[::-1])[::-1]
            areas.append(float((precision * np.diff(hits, prepend=0)).sum() / count) if len(hits) else 0.0)
    return round(100 * float(np.mean(areas)), 1)


def people(model: SceneModel, data: Sequence[tuple[Path, SceneGraph]]) -> dict[str, Any]:
    """Precision and recall of each of PEOPLE, in percent, and how often a person is called just that; a found box is
    that of the annotated one which it overlaps by half, recall of all annotated ones."""
    predictor, out = Predictor(model), {}
    person = {*PEOPLE, "person", "guy", "lady", "child", "kid"}
    for way in ("given", "found"):
        pairs: list[tuple[str, str]] = []
        total: Counter[str] = Counter()
        for path, truth in watched(data, f"photos, boxes {way}"):
            photo = open_photo(path)
            boxes = photo_boxes(truth, photo)
            said = predictor(photo, boxes) if way == "given" else predictor(photo)
            total.update(truth.names)
            overlap = box_iou(boxes, said.boxes)
            for i, name in ((k, each) for k, each in enumerate(truth.names) if each in person):
                best = i if way == "given" else int(overlap[i].argmax()) if len(said) else -1
                if best >= 0 and (way == "given" or overlap[i, best] >= 0.5):
                    pairs.append((name, said.names[best]))
        some = out[f"boxes {way}"] = {"photos": len(data)}
        for name in PEOPLE:
            right, called = pairs.count((name, name)), sum(said == name for _, said in pairs)
            shares = [round(100 * right / max(each, 1), 1) for each in (called, total[name])]
            some[name] = {"annotated": total[name], "called so": called, "precision, recall": shares}
        just = sum(said == "person" for _, said in pairs)
        some["called just person"] = round(100 * just / max(len(pairs), 1), 1)
    return out


def measure(detector: Detector, data: Sequence[tuple[Path, SceneGraph]], vocabulary: Vocabulary) -> dict[str, Any]:
    """Recall at each overlap and number of boxes, in percent; with the right label at an overlap of 0.5."""
    labels = LabelMap.between(Vocabulary(tuple(detector.names)), vocabulary, threshold=2)
    targets = [labels[name].target for name in detector.names]
    number = np.array([-1 if word is None else vocabulary.object_index[word] for word in targets])
    met, named = np.zeros((len(OVERLAPS), len(BUDGETS))), np.zeros(len(BUDGETS))
    total, seconds = 0, 0.0
    for path, truth in watched(data, "photos"):
        photo = open_photo(path)
        start = time.process_time()
        found = detector.detect(photo)
        seconds += time.process_time() - start
        order = np.argsort(-(found.scores if found.sure is None else found.sure), kind="stable")
        overlap = box_iou(photo_boxes(truth, photo), found.boxes[order])
        same = truth.labels[:, None] == number[found.labels[order]]
        total += len(truth)
        for k, most in enumerate(BUDGETS):
            for i, least in enumerate(OVERLAPS):
                met[i, k] += (overlap[:, :most] >= least).any(axis=1).sum()
            named[k] += ((overlap >= 0.5) & same)[:, :most].any(axis=1).sum()
    figures = {f"overlap {least}": _percent(row, total) for least, row in zip(OVERLAPS, met, strict=True)}
    figures["right label"] = _percent(named, total)
    return {"photos": len(data), "boxes": total, **figures, "CPU ms per photo": round(1000 * seconds / len(data), 1)}


def _percent(counts: np.ndarray, total: int) -> list[float]:
    return [round(100 * float(each) / max(total, 1), 1) for each in counts]


def photos_of(dataset: Dataset, every: int = 1, relations: bool = True) -> list[tuple[Path, SceneGraph]]:
    """Images with a photo, and a relation if wanted."""
    data = dataset.drop_empty() if relations else dataset
    return [(path, data[i]) for i in range(len(data)) if (path := data.image_path(i)) is not None][::every]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--split")
    parser.add_argument("--validation", type=int, default=0, help="number of training images that are validation")
    parser.add_argument("--finder", nargs="*", default=[OWN])
    parser.add_argument("--model", default="vg150-photo")
    parser.add_argument("--every", type=int, default=1, help="every n-th photo only")
    parser.add_argument("--ap", action="store_true", help="average precision, too: all things of its labels are listed")
    parser.add_argument("--people", action="store_true", help="how well people are told apart")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    wide = load_model(options.model)
    model = wide.labels_only()
    dataset = open_dataset(options.data, options.split, images=options.photos, validation=options.validation)
    data = photos_of(dataset, options.every, relations=not options.ap)
    report: dict[str, Any] = {"command": "benchmarks/finder.py", "data": options.data.name, "split": options.split}
    if options.people:
        print(json.dumps(people(wide, data), indent=1))
        return
    for name in options.finder:
        report[name] = measure(every_candidate(load_finder(name, model)), data, dataset.vocabulary)
        if options.ap:
            report[name]["AP50"] = average_precision(every_candidate(load_finder(name, wide)), data, dataset.vocabulary)
        print(name, report[name], flush=True)
    if options.json:
        write_json(options.json, report)


if __name__ == "__main__":
    main()
