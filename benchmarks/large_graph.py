"""Memory and time of one very large graph: `python benchmarks/large_graph.py [--boxes 1024] [--model NAME]`.

1,024 boxes are 1,047,552 ordered pairs. Runs `scenegpi predict` on them in a process of its own, with one thread, and
prints the peak of that process, Python and torch included, and its CPU seconds.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from pathlib import Path

from scenegpi.data import write_jsonl
from scenegpi.models.shipped import model_vocabulary
from timing import random_graphs, scenegpi


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--boxes", type=int, default=1024)
    parser.add_argument("--model", default="vg150-layout")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_jsonl(Path(folder) / "boxes.jsonl", random_graphs(model_vocabulary(options.model), 1, options.boxes))
        words = f"predict --boxes boxes.jsonl --model {options.model} --out out --formats png"
        used = scenegpi(f"{words} --max-boxes {options.boxes}", folder)[1]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    pairs = options.boxes * (options.boxes - 1)
    print(f"{options.boxes:,} boxes, {pairs:,} pairs, {options.model}: peak {peak:,.0f} MB, {used:.1f} CPU s")


if __name__ == "__main__":
    main()
