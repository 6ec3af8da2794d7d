"""Speed and memory of the metrics: `python benchmarks/metrics_speed.py`. One core, CPU time, scores drawn at random.

Every row computes all figures of its task, with and without graph constraint, checks of the input included.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tracemalloc
from time import process_time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from scenegpi import SceneGraph, Vocabulary
from scenegpi.metrics import Plan, Protocol, RecallState, ZeroShot
from timing import peak

VOCABULARY = Vocabulary([f"class {i}" for i in range(150)], [f"predicate {i}" for i in range(50)])


def image(rng: np.random.Generator, n: int, relations: int, task: str, number: int) -> tuple[SceneGraph, SceneGraph]:
    """A prediction over all pairs of n boxes, and its ground truth, in an image of 1024 x 768 pixels."""
    start, labels = rng.uniform(0, [900, 700], (n, 2)), rng.integers(0, 150, n)
    place = np.hstack([start, start + rng.uniform(20, 300, (n, 2))])
    pairs = np.array([(i, j) for i in range(n) for j in range(n) if i != j])
    rows = np.column_stack([pairs[rng.integers(0, len(pairs), relations)], rng.zipf(1.6, relations) % 50])
    scores = rng.gamma(0.1, size=(len(pairs), 51)).astype(np.float32) + 1e-6
    scores[:, 0] += 1.0
    guess = np.where(rng.random(n) < 0.7, labels, rng.integers(0, 150, n)) if task != "predcls" else labels
    found = place + rng.normal(0, 4, (n, 1)) if task == "sgdet" else place
    prediction = SceneGraph(
        found,
        guess,
        VOCABULARY,
        scores=None if task == "predcls" else rng.uniform(0.2, 1, n),
        pairs=pairs,
        pair_dist=scores / scores.sum(axis=1, keepdims=True),
    )
    return prediction, SceneGraph(place, labels, VOCABULARY, rows, image_id=number)


def state(task: str, bootstrap: int) -> RecallState:
    """An evaluation with everything on."""
    rng = np.random.default_rng(0)
    seen = np.column_stack([rng.integers(0, 150, (20_000, 2)), rng.integers(0, 50, 20_000)])
    return RecallState(Plan(Protocol(task), VOCABULARY, ZeroShot.not_in(seen), bootstrap=bootstrap))  # type: ignore[arg-type]


def milliseconds(task: str, n: int, relations: int, images: int, bootstrap: int, repeats: int) -> float:
    """The best CPU time an image over the repeats."""
    rng = np.random.default_rng(1)
    data = [image(rng, n, relations, task, number) for number in range(images)]
    predictions, targets = zip(*data, strict=True)
    best = float("inf")
    for _ in range(repeats):
        evaluation = state(task, bootstrap)
        start = process_time()
        evaluation.update(predictions, targets)
        best = min(best, process_time() - start)
    return 1000 * best / images


def large() -> None:
    """One image of 466 boxes, in a process of its own: CPU seconds, its peak memory, and the part due to scoring."""
    rng = np.random.default_rng(2)
    prediction, target = image(rng, 466, 200, "sgdet", 0)
    evaluation = state("sgdet", 0)
    start = process_time()
    evaluation.update([prediction], [target])
    seconds = process_time() - start
    most = peak()
    tracemalloc.start()
    evaluation.update([prediction], [target])
    print(seconds, most, tracemalloc.get_traced_memory()[1] / 2**20)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.large:
        large()
        return
    table = Table("CPU ms per image", "all figures", "+ 1000 replicates", "bound", box=box.SIMPLE_HEAD)
    for task in ("predcls", "sgcls", "sgdet"):
        spent = [milliseconds(task, 11, 7, options.images, replicates, options.repeats) for replicates in (0, 1000)]
        table.add_row(f"{task}, 11 boxes", *(f"{ms:.3f}" for ms in spent), "0.8")
    run = subprocess.run([sys.executable, __file__, "--large"], capture_output=True, text=True, check=True)
    seconds, most, scoring = map(float, run.stdout.split())
    table.add_row("sgdet, 466 boxes", f"{1000 * seconds:.0f}", "", "1000")
    console = Console()
    console.print(table)
    console.print(f"Memory with 466 boxes: {most:.0f} MB in all, {scoring:.0f} MB of it to score them (bound 500).")
    evaluation = state("predcls", 1000)
    sizes = []
    for number in range(2):
        rng = np.random.default_rng(number)
        predictions, targets = zip(*(image(rng, 11, 7, "predcls", i) for i in range(500)), strict=True)
        evaluation.update(predictions, targets)
        sizes.append(len(pickle.dumps(evaluation)) / 2**20)
    console.print(f"State after 500 and 1,000 images: {sizes[0]:.2f} and {sizes[1]:.2f} MB with 1000 replicates.")


if __name__ == "__main__":
    main()
