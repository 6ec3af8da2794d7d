"""What several benchmarks do: make random graphs, time work and the shell, ask for the peak of memory."""

from __future__ import annotations

import os
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary


def random_graphs(
    vocabulary: Vocabulary, count: int, boxes: int, relations: int = 0, size: tuple[int, int] = (640, 480)
) -> Iterator[SceneGraph]:
    """Images of this width and height; speed does not depend on what they say."""
    rng = np.random.default_rng(0)
    for i in range(count):
        corners = rng.uniform(0, 1, (boxes, 2, 2)) * size
        both = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
        labels = rng.integers(0, len(vocabulary.objects), boxes)
        ends = rng.integers(0, boxes, (relations, 2))
        rows = np.column_stack([ends, rng.integers(0, len(vocabulary.predicates), relations)])
        yield SceneGraph(both, labels, vocabulary, rows, image_id=i, width=size[0], height=size[1])


def timed(work: Callable[[], object], rounds: int) -> NDArray[np.float64]:
    """Seconds on the clock and of the processor of each round, (rounds, 2), after one to warm up."""
    times = []
    for _ in range(rounds + 1):
        start, used = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - start, time.process_time() - used))
    return np.array(times[1:])


def peak() -> float:
    """Peak memory of this process so far in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def scenegpi(words: str, folder: str | Path) -> tuple[float, float]:
    """Wall and CPU seconds of one command, given as it is typed, in this folder; it takes one thread."""
    command = [sys.executable, "-c", "from scenegpi.cli import main; main()", *shlex.split(words)]
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, used
