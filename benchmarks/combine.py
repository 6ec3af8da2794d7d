"""Two detectors together: fits how their evidence is combined, and measures it beside each of them alone.

    python benchmarks/combine.py --data VG150 [--photos DIR] --split val --validation 1291 --step 2 --write
    python benchmarks/combine.py --data VRD --split test --step 3 [--first 1] [--detector NAME]

Recall of annotated boxes at 5, 10 and 20 boxes per photo: with any label at overlap 0.5 and 0.7, with the right label
at 0.5. `--write` fits the weights on these photos and writes them into the package (vision/combine.json): those of a
detector that comes in a package under its name, others as those for any detector.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from finder import photos_of
from scenegpi.boxes import box_iou, suppress
from scenegpi.data import open_dataset
from scenegpi.files import read_object, write_json
from scenegpi.models import load_model
from scenegpi.prediction.finding import UNION, load_finder
from scenegpi.progress import watched
from scenegpi.training.finder_calibration import fit_combination
from scenegpi.vision import combine
from scenegpi.vision.detect import DETECTORS
from scenegpi.vision.photos import EncodedPhoto, open_photo, photo_boxes
from scenegpi.words.label_map import LabelMap

BUDGETS = (5, 10, 20)
LEAK = 0.02
WEIGHTS = Path(combine.__file__).with_name("combine.json")


def recalls(rows: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]) -> str:
    """Of boxes and labels (best first) against annotated boxes and labels, per photo."""
    hits, total = np.zeros((3, len(BUDGETS))), sum(len(truth) for _, _, truth, _ in rows)
    for boxes, labels, truth, names in rows:
        if not len(boxes) or not len(truth):
            continue
        iou = box_iou(truth, boxes)
        for k, most in enumerate(BUDGETS):
            best, same = iou[:, :most], names[:, None] == labels[:most]
            hits[:, k] += [(kind.any(1)).sum() for kind in (best >= 0.5, best >= 0.7, (best >= 0.5) & same)]
    any_label, tight, named = (" / ".join(f"{100 * each / total:.1f}" for each in row) for row in hits)
    return f"any label {any_label}; overlap 0.7 {tight}; right label {named}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--split")
    parser.add_argument("--validation", type=int, default=0, help="number of training images that are validation")
    parser.add_argument("--step", type=int, default=1, help="take every n-th photo")
    parser.add_argument("--first", type=int, default=0, help="begin with this one")
    parser.add_argument("--detector", default="yolov4-tiny", help="the other detector, as for scenegpi predict")
    parser.add_argument("--model", default="vg150-photo")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    model = load_model(options.model)
    both: Any = load_finder(UNION + options.detector, model)
    dataset = open_dataset(options.data, options.split, images=options.photos, validation=options.validation)
    examples: list[Any] = []
    for path, graph in watched(photos_of(dataset)[options.first :: options.step], "photos"):
        encoded = EncodedPhoto(open_photo(path))
        height, width = encoded.pixels.shape[:2]
        truth = photo_boxes(graph, encoded.pixels)
        examples.append((both.candidates(encoded), (width, height), truth, np.array(graph.names)))
    found = [combine.things(*given, size, LEAK) for given, size, _, _ in examples]
    if options.write:
        weights = fit_combination(list(zip(found, (truth for _, _, truth, _ in examples), strict=True)))
        name = options.detector if options.detector in DETECTORS else combine.ANY
        write_json(WEIGHTS, read_object(WEIGHTS) | {name: {**weights, "leak": [LEAK]}})
        both.weights = {**weights, "leak": [LEAK]}
        print(both.weights)
    words = LabelMap.between(model.vocabulary, dataset.vocabulary, threshold=2)
    ours = np.array([words[name].target or "" for name in model.vocabulary.objects])

    def named(dist: np.ndarray) -> np.ndarray:
        return ours[dist.argmax(1)] if len(dist) else np.empty(0, dtype=str)

    table: dict[str, list[Any]] = {"finder": [], options.detector: [], UNION + options.detector: []}
    for things, ((mine, theirs, sets, _), _, truth, names) in zip(found, examples, strict=True):
        chance = combine.chances(things, both.weights)
        kept = suppress(things.boxes, chance, np.zeros(len(chance), dtype=np.int64), combine.APART)
        told = np.where(sets.any(1, keepdims=True), sets, 0)
        for name, boxes, labels in (
            ("finder", mine.boxes, named(mine.dist)),
            (options.detector, theirs.boxes, named(told * theirs.dist)),
            (UNION + options.detector, things.boxes[kept], named(things.dist[kept])),
        ):
            table[name].append((boxes, labels, truth, names))
    print(f"{options.data.name}: {len(examples)} photos, {sum(len(each[2]) for each in examples):,} boxes")
    for name, rows in table.items():
        print(f"{name}: {recalls(rows)}")


if __name__ == "__main__":
    main()
