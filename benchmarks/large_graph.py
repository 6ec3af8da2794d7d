"""Memory and time of one very large graph: `python benchmarks/large_graph.py [--boxes 1024] [--model NAME]`.

1,024 boxes are 1,047,552 ordered pairs. Runs `scenegpi predict` on them in a process of its own, with one thread, and
prints the peak of that process, Python and torch included, and its CPU seconds.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from scenegpi.data import write_jsonl
from scenegpi.graph import SceneGraph
from scenegpi.models.shipped import model_vocabulary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--boxes", type=int, default=1024)
    parser.add_argument("--model", default="vg150-layout")
    options = parser.parse_args()
    vocabulary = model_vocabulary(options.model)
    rng = np.random.default_rng(0)
    corner = rng.uniform(0, 800, (options.boxes, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(5, 200, (options.boxes, 2))], 1)
    labels = rng.integers(0, len(vocabulary.objects), options.boxes)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "boxes.jsonl"
        write_jsonl(file, [SceneGraph(boxes, labels, vocabulary, width=1000, height=1000)])
        words = ["predict", "--boxes", file, "--model", options.model, "--max-boxes", options.boxes]
        words += ["--out", Path(folder) / "out", "--formats", "png"]
        command = [sys.executable, "-c", "from scenegpi.cli import main; main()", *map(str, words)]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    pairs = options.boxes * (options.boxes - 1)
    print(
        f"{options.boxes:,} boxes, {pairs:,} pairs, {options.model}: "
        f"peak {used.ru_maxrss / 1024:,.0f} MB, {used.ru_utime + used.ru_stime:.1f} CPU s"
    )


if __name__ == "__main__":
    main()
