"""Which packaged detector finds more of what people annotated? Both on the same photos, with their speed.

    python benchmarks/detectors.py [--data VRD] [--photos N] [--detector NAME ...] [--size NAME=PIXELS ...]

Labels of the detector (COCO) are mapped to the data set's by the reviewed table. An annotated box counts as found if
a detection of its label overlaps it by half (IoU >= 0.5, pixels inclusively); "any label" asks for the overlap alone.
Only boxes whose label some COCO label maps to count: no COCO detector can find a sky. "Agree" is the share of
detections that meet an annotated box of their label; annotations are incomplete, so it is a lower bound of precision.
"Relations" is the share of annotated relations between such boxes whose two boxes are both found. Times are of
`detect` alone, one thread.
"""

from __future__ import annotations

import argparse
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from scenegpi.boxes import box_iou
from scenegpi.data import open_dataset
from scenegpi.data.coco_names import COCO_PLACES
from scenegpi.graph import SceneGraph
from scenegpi.vision.detect import DETECTORS, Detections, Detector, load_detector
from scenegpi.vision.photos import open_photo, photo_boxes
from scenegpi.words.label_map import LabelMap

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
FLOORS = (0.25, 0.5)
BUDGETS = (3, 5, 8)
LOW = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "vrd")
    parser.add_argument("--photos", type=int, default=None, help="number of photos")
    parser.add_argument("--detector", nargs="*", default=list(DETECTORS))
    parser.add_argument("--size", nargs="*", default=[], help="also at another size: yolov4-tiny=608")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if find_spec("cv2") is not None:
        import_module("cv2").setNumThreads(1)
    console = Console(width=150)
    dataset = open_dataset(arguments.data, split="test")
    labels = LabelMap.between(list(COCO_PLACES.values()), dataset.vocabulary, threshold=2)
    pairs = [(graph, path) for graph in dataset if (path := dataset.photo_path(graph)) is not None and len(graph)]
    pairs = pairs[: arguments.photos]
    reachable = {dataset.vocabulary.object_index[m.target] for m in labels.matches if m.target}
    boxes = sum(len(graph) for graph, _ in pairs)
    inside = sum(int(np.isin(graph.labels, list(reachable)).sum()) for graph, _ in pairs)
    console.print(
        f"{len(pairs)} photos, {boxes:,} annotated boxes, {inside:,} of them with one of the {len(reachable)} labels "
        f"that COCO's 80 map to"
    )
    table = Table("detector", "floor", "boxes found", "any label", "agree", "boxes per photo", "relations", "CPU ms")
    runs = [(name, None) for name in arguments.detector]
    runs += [(name, int(size)) for name, _, size in (entry.partition("=") for entry in arguments.size)]
    for name, size in runs:
        detector = load_detector(name)
        detector.floor = LOW  # type: ignore[attr-defined]
        if size:
            detector.size = size  # type: ignore[attr-defined]
        found, times = run(detector, pairs, console)
        title = f"{name}{f' at {size}' if size else ''}"
        for floor in (*FLOORS, *(budget_floor(found, labels, budget) for budget in BUDGETS)):
            counts = score(pairs, found, labels, reachable, floor)
            table.add_row(
                title, f"{floor:.2f}", *counts, f"{1000 * np.median(times):.0f}", end_section=floor == FLOORS[-1]
            )
            title = ""
        table.add_section()
    console.print(table)


def run(
    detector: Detector, pairs: list[tuple[SceneGraph, Path]], console: Console
) -> tuple[list[Detections], list[float]]:
    found, times = [], []
    for _, path in track(pairs, "photos", console=console, transient=True, disable=not console.is_terminal):
        photo = open_photo(path)
        start = time.process_time()
        found.append(detector.detect(photo))
        times.append(time.process_time() - start)
    return found, times


def budget_floor(found: list[Detections], labels: LabelMap, boxes: int) -> float:
    """The floor that leaves this many boxes per photo, of those with a matching label."""
    scores = np.concatenate([d.scores[[labels[d.names[i]].target is not None for i in d.labels]] for d in found])
    return float(np.sort(scores)[::-1][min(boxes * len(found), len(scores)) - 1])


def score(
    pairs: list[tuple[SceneGraph, Path]], found: list[Detections], labels: LabelMap, reachable: set[int], floor: float
) -> list[str]:
    """Recall, recall of any label, agreement, boxes per photo, relations with both ends."""
    wanted = hit = hit_any = agreed = mapped = relations = both = 0
    for (graph, _), detections in zip(pairs, found, strict=True):
        here = detections.scores >= floor
        to = labels.names(detections.names[i] for i in detections.labels[here])
        numbers = np.array([-1 if name is None else labels.target.object_index[name] for name in to], dtype=np.int64)
        boxes = detections.boxes[here][numbers >= 0]
        numbers = numbers[numbers >= 0]
        overlap = box_iou(on_photo(graph, detections), boxes) >= 0.5
        same = overlap & (graph.labels[:, None] == numbers)
        asked = np.isin(graph.labels, list(reachable))
        wanted += int(asked.sum())
        hit += int(same.any(axis=1)[asked].sum())
        hit_any += int(overlap.any(axis=1)[asked].sum())
        mapped += len(boxes)
        agreed += int(same.any(axis=0).sum())
        ends = graph.relations[:, :2]
        possible = asked[ends].all(axis=1)
        relations += int(possible.sum())
        both += int(same.any(axis=1)[ends].all(axis=1)[possible].sum())
    shares = (hit / wanted, hit_any / wanted, agreed / max(mapped, 1))
    return [*(f"{100 * share:.1f}" for share in shares), f"{mapped / len(pairs):.1f}", f"{100 * both / relations:.1f}"]


def on_photo(graph: SceneGraph, detections: Detections) -> np.ndarray:
    width, height = detections.size
    return photo_boxes(graph, np.empty((height, width, 0), dtype=np.uint8))


if __name__ == "__main__":
    main()
