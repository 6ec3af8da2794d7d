"""How fast graphs are predicted: the layout model in batches, the whole command's engine, and a photo model.

    python benchmarks/predict_speed.py [--boxes 12] [--graphs 600] [--threads 2] [--model NAME] [--photo FILE]

Graphs are random boxes and labels of the model's vocabulary (speed does not depend on what they say); images have
640 x 480 pixels. The best of three rounds counts, after one round to warm up; on a busy machine look at the processor's
time (threads that wait for each other spin: take --threads 1 there). Times include making batches and
SceneGraphs; "written" also has the JSON lines. A model that sees is shown a photo (random pixels, or --photo).
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

from scenegpi.commands.predict_output import PredictionLog
from scenegpi.graph import SceneGraph
from scenegpi.models.build import SceneModel
from scenegpi.models.bulk import Engine, Item
from scenegpi.models.checkpoint import load_model
from scenegpi.models.predict import predict, predict_graphs
from scenegpi.models.shipped import shipped_models
from scenegpi.vision.photos import as_photo


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
        "model", "what", "a second", "ms each", "CPU ms each",
        title=f"{arguments.boxes} boxes an image, {arguments.threads} threads, load of the machine before: {load:.1f}",
    )  # fmt: skip
    for name in [arguments.model] if arguments.model else shipped_models():
        model = load_model(name)
        graphs = random_graphs(model, arguments.graphs, arguments.boxes)
        for what, count, work in cases(model, graphs, arguments.photo):
            seconds, used = best(work, arguments.rounds)
            table.add_row(
                name, what, f"{count / seconds:,.0f}", f"{1000 * seconds / count:.2f}", f"{1000 * used / count:.2f}"
            )
    console.print(table)


def cases(model: SceneModel, graphs: list[SceneGraph], photo: Path | None) -> list[tuple[str, int, Callable[[], None]]]:
    """What is timed, how many images it is, and the work."""
    items = [Item(str(i), graph=graph) for i, graph in enumerate(graphs)]
    one = graphs[0]

    def batches() -> None:
        for _ in predict_graphs(model, graphs, top=20):
            pass

    def engine() -> None:
        for _ in Engine(model).run(items):
            pass

    def written() -> None:
        with tempfile.TemporaryDirectory() as folder:
            log = PredictionLog(Path(folder), {})
            outcomes = list(Engine(model).run(items))
            log.append((outcome.item.key, outcome.item.key, outcome.graph) for outcome in outcomes if outcome.graph)

    def alone() -> None:
        for _ in range(20):
            predict(model, one.boxes, one.names, width=640, height=480)

    drawn = list(predict_graphs(model, graphs[:5], top=10))

    def pictures() -> None:
        with tempfile.TemporaryDirectory() as folder:
            for graph in drawn:
                graph.draw(Path(folder) / "x.png")

    found: list[tuple[str, int, Callable[[], None]]] = [
        ("graphs in batches", len(graphs), batches),
        ("as `scenegpi predict` does it", len(graphs), engine),
        ("the same, written", len(graphs), written),
        ("one at a time", 20, alone),
        (f"PNG of {len(one)} boxes", len(drawn), pictures),
    ]
    if model.vision is not None:
        pixels = as_photo(photo) if photo else np.random.default_rng(0).integers(0, 255, (480, 640, 3), dtype=np.uint8)

        def seen() -> None:
            for _ in range(5):
                predict(model, one.boxes, image=pixels, width=640, height=480)

        found.append(("a photo, labels and relations", 5, seen))
    return found


def random_graphs(model: SceneModel, count: int, boxes: int) -> list[SceneGraph]:
    rng = np.random.default_rng(0)
    graphs = []
    for i in range(count):
        corners = rng.uniform(0, 1, (boxes, 2, 2)) * [640, 480]
        both = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
        labels = rng.integers(0, len(model.vocabulary.objects), boxes)
        graphs.append(SceneGraph(both, labels, model.vocabulary, image_id=i, width=640, height=480))
    return graphs


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
