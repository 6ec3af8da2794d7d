"""How fast graphs are predicted: in batches, one call at a time, from the shell, and from a photo.

    python benchmarks/predict_speed.py [--boxes 12] [--graphs 600] [--threads 2] [--model NAME] [--photo FILE]

Graphs are random boxes and labels of the model's vocabulary (speed does not depend on what they say); images have
640 x 480 pixels. The best of three rounds counts, after one round to warm up; on a busy machine look at the processor's
time (threads that wait for each other spin: take --threads 1 there). Times include making batches and
SceneGraphs; "written" also has the JSON lines. A model that uses photos is given one (random pixels, or --photo).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from scenegpi.bulk.run_folder import PredictionLog, Row
from scenegpi.data import write_jsonl
from scenegpi.graph import SceneGraph
from scenegpi.models.build import SceneModel
from scenegpi.models.checkpoint import load_model
from scenegpi.models.shipped import model_vocabulary, shipped_models
from scenegpi.prediction import Predictor
from scenegpi.vision.photos import as_photo
from timing import random_graphs, scenegpi


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boxes", type=int, default=12)
    parser.add_argument("--graphs", type=int, default=600)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--model", default=None, help="only this one; by default all that ship")
    parser.add_argument("--photo", type=Path, default=None)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    console = Console(width=120)
    load = os.getloadavg()[0]
    table = Table(
        "model", "what", "per second", "ms each", "CPU ms each",
        title=f"{arguments.boxes} boxes per image, {arguments.threads} threads, load of the machine before: {load:.1f}",
    )  # fmt: skip
    for name in [arguments.model] if arguments.model else shipped_models():
        model = load_model(name)
        graphs = random_graphs(model.vocabulary, arguments.graphs, arguments.boxes)
        for what, count, work in cases(model, graphs, arguments.photo):
            seconds, used = best(work, arguments.rounds)
            table.add_row(
                name, what, f"{count / seconds:,.0f}", f"{1000 * seconds / count:.2f}", f"{1000 * used / count:.2f}"
            )
    if arguments.model in (None, "vg150-layout"):
        graphs = random_graphs(model_vocabulary("vg150-layout"), 1, arguments.boxes)
        seconds, used = command(graphs, arguments.rounds)
        table.add_row(
            "vg150-layout", "`scenegpi predict` from the shell", "", f"{1000 * seconds:.0f}", f"{1000 * used:.0f}"
        )
    console.print(table)


def cases(model: SceneModel, graphs: list[SceneGraph], photo: Path | None) -> list[tuple[str, int, Callable[[], None]]]:
    """What is timed, how many images it is, and the work."""
    one = graphs[0]
    predictor = Predictor(model)
    names, size = one.names, {"width": 640, "height": 480}

    def batches() -> None:
        for _ in predictor.stream(graphs):
            pass

    def written() -> None:
        with tempfile.TemporaryDirectory() as folder, PredictionLog(Path(folder), {}) as log:
            found = list(predictor.stream(graphs))
            log.append(Row(str(i), str(i), each.graph, "") for i, each in enumerate(found) if each.graph)

    def alone() -> None:
        for _ in range(20):
            predictor(boxes=one.boxes, labels=names, **size)

    drawn = [each.graph for each in predictor.stream(graphs[:5]) if each.graph]

    def pictures() -> None:
        with tempfile.TemporaryDirectory() as folder:
            for graph in drawn:
                graph.draw(Path(folder) / "x.png")

    found: list[tuple[str, int, Callable[[], None]]] = [
        ("graphs in batches", len(graphs), batches),
        ("the same, written", len(graphs), written),
        ("one call", 20, alone),
        (f"PNG of {len(one)} boxes", len(drawn), pictures),
    ]
    if model.vision is not None:
        pixels = as_photo(photo) if photo else np.random.default_rng(0).integers(0, 255, (480, 640, 3), dtype=np.uint8)

        def photos() -> None:
            for _ in range(5):
                predictor(pixels, one.boxes, **size)

        found.append(("a photo, labels and relations", 5, photos))
    return found


def command(graphs: list[SceneGraph], rounds: int) -> tuple[float, float]:
    """Wall and CPU seconds of `scenegpi predict` on one image, picture included, from the shell; the best of rounds."""
    with tempfile.TemporaryDirectory() as folder:
        write_jsonl(Path(folder) / "boxes.jsonl", graphs)
        words = "predict --boxes boxes.jsonl --model vg150-layout --out out --force"
        times = [scenegpi(words, folder) for _ in range(rounds + 1)]
    return min(seconds for seconds, _ in times), min(used for _, used in times)


def best(work: Callable[[], None], rounds: int) -> tuple[float, float]:
    """Seconds of the fastest round, on the clock and of processor."""
    work()
    times = []
    for _ in range(rounds):
        start, used = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - start, time.process_time() - used))
    return min(seconds for seconds, _ in times), min(used for _, used in times)


if __name__ == "__main__":
    main()
