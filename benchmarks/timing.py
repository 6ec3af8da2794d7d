"""What several benchmarks do: make random boxes with labels, and time `scenegpi` from the shell."""

from __future__ import annotations

import os
import resource
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary


def random_graphs(vocabulary: Vocabulary, count: int, boxes: int) -> list[SceneGraph]:
    """Images of 640 x 480 pixels; speed does not depend on what they say."""
    rng = np.random.default_rng(0)
    graphs = []
    for i in range(count):
        corners = rng.uniform(0, 1, (boxes, 2, 2)) * [640, 480]
        both = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
        labels = rng.integers(0, len(vocabulary.objects), boxes)
        graphs.append(SceneGraph(both, labels, vocabulary, image_id=i, width=640, height=480))
    return graphs


def scenegpi(words: str, folder: str | Path) -> tuple[float, float]:
    """Wall and CPU seconds of one command, given as it is typed, in this folder; it takes one thread."""
    command = [sys.executable, "-c", "from scenegpi.cli import main; main()", *shlex.split(words)]
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, used
