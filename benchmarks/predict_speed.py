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
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
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
from timing import random_graphs, scenegpi, timed

Case = tuple[str, int, Callable[[], object]]


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
    load = os.getloadavg()[0]
    table = Table(
        "model", "what", "per second", "ms each", "CPU ms each",
        title=f"{arguments.boxes} boxes per image, {arguments.threads} threads, load of the machine before: {load:.1f}",
    )  # fmt: skip
    for name in [arguments.model] if arguments.model else shipped_models():
        model = load_model(name)
        graphs = list(random_graphs(model.vocabulary, arguments.graphs, arguments.boxes))
        for what, count, work in cases(model, graphs, arguments.photo):
            seconds, used = timed(work, arguments.rounds).min(0) / count
            table.add_row(name, what, f"{1 / seconds:,.0f}", f"{1000 * seconds:.2f}", f"{1000 * used:.2f}")
    if arguments.model in (None, "vg150-layout"):
        graphs = list(random_graphs(model_vocabulary("vg150-layout"), 1, arguments.boxes))
        seconds, used = 1000 * command(graphs, arguments.rounds).min(0)
        table.add_row("vg150-layout", "`scenegpi predict` from the shell", "", f"{seconds:.0f}", f"{used:.0f}")
    Console(width=120).print(table)


def cases(model: SceneModel, graphs: list[SceneGraph], photo: Path | None) -> list[Case]:
    """What is timed, how many images it is, and the work."""
    one, predictor = graphs[0], Predictor(model)
    names, size = one.names, {"width": 640, "height": 480}

    def written() -> None:
        with tempfile.TemporaryDirectory() as folder, PredictionLog(Path(folder), {}) as log:
            found = list(predictor.stream(graphs))
            log.append(Row(str(i), str(i), each.graph, "") for i, each in enumerate(found) if each.graph)

    drawn = [each.graph for each in predictor.stream(graphs[:5]) if each.graph]

    def pictures() -> None:
        with tempfile.TemporaryDirectory() as folder:
            for graph in drawn:
                graph.draw(Path(folder) / "x.png")

    found: list[Case] = [
        ("graphs in batches", len(graphs), lambda: list(predictor.stream(graphs))),
        ("the same, written", len(graphs), written),
        ("one call", 20, lambda: [predictor(boxes=one.boxes, labels=names, **size) for _ in range(20)]),
        (f"PNG of {len(one)} boxes", len(drawn), pictures),
    ]
    if model.vision is not None:
        pixels = as_photo(photo) if photo else np.random.default_rng(0).integers(0, 255, (480, 640, 3), dtype=np.uint8)
        found.append(
            ("a photo, labels and relations", 5, lambda: [predictor(pixels, one.boxes, **size) for _ in range(5)])
        )
    return found


def command(graphs: list[SceneGraph], rounds: int) -> NDArray[np.float64]:
    """Wall and CPU seconds of `scenegpi predict` on one image, picture included, from the shell: (rounds + 1, 2)."""
    with tempfile.TemporaryDirectory() as folder:
        write_jsonl(Path(folder) / "boxes.jsonl", graphs)
        words = "predict --boxes boxes.jsonl --model vg150-layout --out out --force"
        return np.array([scenegpi(words, folder) for _ in range(rounds + 1)])


if __name__ == "__main__":
    main()
