"""Speed and memory of the data room on a full-size Visual Genome file, made up at random.

    python benchmarks/data_speed.py [--images 108073] [--rows NAME ...] [--json FILE]

108,073 images, 1.15 M boxes, 0.62 M relations, as in the field's VG-SGG.h5 (with gzip chunks, as there). Each row is
measured in a process of its own: seconds of wall and CPU time, and the peak of its memory. "train a step" does so on
counts of all training images, "score" scores that model on all test images (PredCls), and "convert raw" turns a
`scene_graphs.json` of 1 GB, as Visual Genome publishes its own, into JSON lines.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

BOXES, RELATIONS, IMAGES = 1_145_398, 622_705, 108_073


def make(folder: Path, images: int, seed: int = 0) -> Path:
    """A file of `images` images with boxes and relations in Visual Genome's proportions."""
    import h5py

    rng = np.random.default_rng(seed)
    boxes_of = 1 + rng.poisson(BOXES / IMAGES - 1, images)
    relations_of = np.where(boxes_of > 1, rng.poisson(RELATIONS / IMAGES, images), 0)
    total_boxes, total_relations = int(boxes_of.sum()), int(relations_of.sum())
    size = rng.integers(10, 400, (total_boxes, 2))
    centre = size // 2 + rng.integers(0, 600, (total_boxes, 2))
    first_box = np.cumsum(boxes_of) - boxes_of
    image = np.repeat(np.arange(images), relations_of)
    ends = first_box[image][:, None] + (rng.random((total_relations, 2)) * boxes_of[image][:, None]).astype(int)
    first_rel = np.cumsum(relations_of) - relations_of
    none = relations_of == 0
    arrays = {
        "labels": rng.integers(1, 151, (total_boxes, 1)),
        "boxes_1024": np.concatenate([centre, size], axis=1).astype(np.int32),
        "boxes_512": (np.concatenate([centre, size], axis=1) // 2).astype(np.int32),
        "img_to_first_box": first_box.astype(np.int32),
        "img_to_last_box": (first_box + boxes_of - 1).astype(np.int32),
        "img_to_first_rel": np.where(none, -1, first_rel).astype(np.int32),
        "img_to_last_rel": np.where(none, -1, first_rel + relations_of - 1).astype(np.int32),
        "predicates": rng.integers(1, 51, (total_relations, 1)),
        "relationships": ends.astype(np.int32),
        "split": np.where(np.arange(images) < images * 0.7, 0, 2).astype(np.int32),
    }
    folder.mkdir(parents=True, exist_ok=True)
    with h5py.File(folder / "VG-SGG.h5", "w") as file:
        for name, value in arrays.items():
            file.create_dataset(name, data=value, compression="gzip", compression_opts=4)
    objects = {str(i): f"object {i}" for i in range(1, 151)}
    predicates = {str(i): f"predicate {i}" for i in range(1, 51)}
    (folder / "VG-SGG-dicts.json").write_text(json.dumps({"idx_to_label": objects, "idx_to_predicate": predicates}))
    about = {"width": 800, "height": 600, "coco_id": None, "flickr_id": None}
    rows = [{"image_id": i, "url": f"https://example.org/VG_100K_2/{i}.jpg", **about} for i in range(1, images + 1)]
    (folder / "image_data.json").write_text(json.dumps(rows))
    return folder


def make_raw(folder: Path, images: int, seed: int = 0) -> float:
    """The same as `scene_graphs.json` (42 objects and 23 relations per image); gives its size in MB.

    The objects of some hundred images come again and again: nothing that is read depends on it.
    """
    rng = np.random.default_rng(seed)
    bodies = []
    for _ in range(300):
        x, y, w, h = rng.integers(1, 400, (4, 42)).tolist()
        objects = [
            {"object_id": 1_058_000 + i, "x": x[i], "y": y[i], "w": w[i], "h": h[i], "names": [f"object {word}"]}
            | {"synsets": [f"object_{word}.n.01"], "attributes": [f"attribute {word % 90}"]}
            for i, word in enumerate(rng.integers(0, 5000, 42).tolist())
        ]
        relations = [
            {"relationship_id": 15_900 + i, "predicate": f"predicate {word}", "synsets": ["along.r.01"]}
            | {"subject_id": 1_058_000 + a, "object_id": 1_058_000 + b}
            for i, (a, b, word) in enumerate(rng.integers(0, 42, (23, 3)).tolist())
        ]
        bodies.append(json.dumps({"objects": objects, "relationships": relations})[1:])
    folder.mkdir()
    with (folder / "scene_graphs.json").open("w") as file:
        for i in range(images):
            file.write(f'{"," if i else "["} {{"image_id": {i + 1}, {bodies[i % len(bodies)]}')
        file.write("]")
    return (folder / "scene_graphs.json").stat().st_size / 1e6


def step(name: str, folder: Path) -> dict[str, Any]:
    """Runs one row in this process and measures it."""
    from scenegpi.data import convert, open_dataset, validate

    dataset = open_dataset(folder) if name in ("iterate", "convert to JSON lines", "convert, half") else None
    figures: dict[str, Any] = {}
    start, start_cpu = time.perf_counter(), time.process_time()
    if name == "open":
        dataset = open_dataset(folder)
    elif name == "iterate":
        figures["images"] = sum(1 for _ in dataset)
    elif name == "validate":
        validate(folder)
    elif name == "train a step":
        figures["loss"] = train_step(folder)
    elif name == "score":
        from scenegpi.evaluation import evaluate_model
        from scenegpi.metrics import Protocol

        result = evaluate_model(folder / "model", Protocol(), data=folder, split="test", bootstrap=0)
        figures["R@50"] = result.figures["R@50"]
    else:
        whole = open_dataset(folder / "raw") if name == "convert raw" else dataset
        part = whole[: len(whole) // 2] if name == "convert, half" else whole
        convert(part, folder / f"{name}.jsonl", overwrite=True)
        (folder / f"{name}.jsonl").unlink()
    figures["seconds"] = time.perf_counter() - start
    figures["cpu_seconds"] = time.process_time() - start_cpu
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if name == "iterate":
        figures["about"] = f"{figures['images'] / figures['cpu_seconds']:,.0f} images/s"
    return figures


def train_step(folder: Path) -> float:
    """The loss of the first step of a baseline that counted all training images; it is saved in the folder."""
    from scenegpi.models import save_model
    from scenegpi.training.batches import TrainingImages, train_loader
    from scenegpi.training.data_split import open_images
    from scenegpi.training.losses import scene_loss
    from scenegpi.training.recipes import train_config
    from scenegpi.training.stage import Run, make_module

    config = train_config({"preset": "baseline", "data": {"path": str(folder)}})
    images = open_images(config.data)
    module = make_module(Run(config, images, folder))
    data = TrainingImages(images.train, config)
    batch = next(iter(train_loader(data)))
    loss = scene_loss(module.model(batch), batch, config.baseline.loss).sum()
    loss.backward()
    save_model(module.model, folder / "model", overwrite=True)
    return float(loss.detach())


def held_graphs(count: int = 100_000) -> dict[str, Any]:
    """Independent graphs of Visual Genome's size (no shared arrays) in a list: memory against their raw arrays."""
    import tracemalloc

    from scenegpi import Vocabulary
    from timing import random_graphs

    vocabulary = Vocabulary([f"o{i}" for i in range(150)], [f"p{i}" for i in range(50)])
    tracemalloc.start()
    start = time.perf_counter()
    held = list(random_graphs(vocabulary, count, boxes=11, relations=6))
    cost = tracemalloc.get_traced_memory()[0]
    raw = sum(g.boxes.nbytes + g.labels.nbytes + g.relations.nbytes for g in held)
    about = f"{count:,} graphs: {cost / 2**20:.0f} MB for {raw / 2**20:.0f}, {cost / raw:.2f}x"
    return {"seconds": time.perf_counter() - start, "about": about}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=IMAGES)
    parser.add_argument("--rows", nargs="+", help="only these, by name")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(held_graphs() if options.step == "own arrays" else step(options.step, options.folder)))
        return
    targets = {
        "open": "under 2 s and 400 MB",
        "iterate": "30,000 images/s or more",
        "validate": "under 20 s",
        "convert to JSON lines": "under 60 s, memory flat",
        "convert, half": "same peak as the whole",
        "train a step": "under 1,500 MB",
        "score": "under 1,500 MB",
        "convert raw": "under 1,000 MB",
        "own arrays": "at most 3x the raw arrays",
    }
    targets = {name: target for name, target in targets.items() if not options.rows or name in options.rows}
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        if targets.keys() - {"convert raw", "own arrays"}:
            make(Path(folder), options.images)
        raw = make_raw(Path(folder) / "raw", options.images) if "convert raw" in targets else 0.0
        for name in targets:
            command = [sys.executable, __file__, "--step", name, "--folder", folder]
            results[name] = json.loads(subprocess.check_output(command, text=True))
            if name == "convert raw":
                results[name]["about"] = f"{raw:,.0f} MB of JSON"
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"data room, {options.images:,} images, one process per row")
    for column in ("what", "wall s", "CPU s", "peak MB", "", "target"):
        table.add_column(column, justify="left" if column in ("what", "target", "") else "right")
    for name, figures in results.items():
        cells = [f"{figures[key]:.2f}" if key in figures else "" for key in ("seconds", "cpu_seconds")]
        peak = f"{figures['peak_mb']:.0f}" if "peak_mb" in figures else ""
        table.add_row(name, *cells, peak, figures.get("about", ""), targets[name])
    Console(width=130).print(table)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
