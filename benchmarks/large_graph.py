"""Memory and time of one very large graph: `python benchmarks/large_graph.py [--boxes 1000] [--model NAME]`.

1,000 boxes are 999,000 ordered pairs. Prints the peak of the whole process, Python and torch included, in a process of
its own, so that nothing else counts.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import torch

from scenegpi import load_model
from scenegpi.features.batch import SceneBatch
from scenegpi.graph import SceneGraph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--boxes", type=int, default=1000)
    parser.add_argument("--model", default="vg150-layout")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = load_model(options.model).eval()
    rng = np.random.default_rng(0)
    corner = rng.uniform(0, 800, (options.boxes, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(5, 200, (options.boxes, 2))], 1)
    labels = rng.integers(0, len(model.vocabulary.objects), options.boxes)
    graph = SceneGraph(boxes, labels, model.vocabulary, width=1000, height=1000)
    before = peak()
    started = time.process_time()
    with torch.inference_mode():
        out = model(SceneBatch.of([graph]))
    seconds = time.process_time() - started
    pairs = out.edges[-1].shape[0]
    print(
        f"{options.boxes:,} boxes, {pairs:,} pairs: {seconds:.1f} CPU s, peak {peak():,.0f} MB ({before:,.0f} before)"
    )


def peak() -> float:
    """Largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
