"""Time and memory of a photo: 640 x 480 pixels with 10 boxes, from the file to label distributions.

    python benchmarks/photo_speed.py [--boxes 10] [--width 640] [--height 480]

One row per number of threads, each in its own process: milliseconds (the least and the median of `--repeats` photos,
after one to warm up) of opening the JPEG, of the box features (the photo and its mirror image through the backbone), of
the label head, and of all together; CPU milliseconds; and the peak of memory beside that of a process that has only
imported torch. Up to 32 boxes are computed by one thread whatever their number (see scenegpi.threads). The picture is
made up and the label head is not trained.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from timing import peak, random_graphs

NAMES = ("open", "features", "labels", "all", "median", "CPU")


def make(path: Path, width: int, height: int) -> None:
    """A smooth picture with some grain, as JPEG."""
    from PIL import Image

    rng = np.random.default_rng(0)
    coarse = Image.fromarray(rng.integers(0, 255, (12, 16, 3)).astype(np.uint8)).resize((width, height))
    grain = rng.normal(0, 12, (height, width, 3))
    Image.fromarray((np.asarray(coarse) + grain).clip(0, 255).astype(np.uint8)).save(path, quality=90)


def row(path: Path, args: argparse.Namespace) -> dict[str, float]:
    """Measures in this process, with the threads the environment gives."""
    import torch

    from scenegpi import Vocabulary
    from scenegpi.vision import BoxFeatureConfig, VisionConfig, VisionModel, open_photo

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    before = peak()
    vocabulary = Vocabulary([f"label {k}" for k in range(100)], ["near"])
    vision = VisionModel(VisionConfig(BoxFeatureConfig(photo_size=args.size)), vocabulary)
    graph = next(random_graphs(vocabulary, 1, args.boxes, size=(args.width, args.height)))
    times: dict[str, list[float]] = defaultdict(list)
    for repeat in range(args.repeats + 1):
        start, start_cpu = time.perf_counter(), time.process_time()
        photo = open_photo(path)
        opened = time.perf_counter()
        features = vision.box_features(photo, graph)
        described = time.perf_counter()
        vision.label_dist_of(features, graph)
        end = time.perf_counter()
        parts = {"open": opened - start, "features": described - opened, "labels": end - described}
        parts |= {"all": end - start, "CPU": time.process_time() - start_cpu}
        for name, seconds in parts.items():
            if repeat:
                times[name].append(1000 * seconds)
    least = {name: min(values) for name, values in times.items()}
    return {**least, "median": statistics.median(times["all"]), "peak MB": peak(), "torch alone MB": before}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boxes", type=int, default=10)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--size", type=int, default=320, help="side of the square that the photo is stretched to")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--row", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.row:
        print(json.dumps(row(args.row, args)))
        return
    with tempfile.TemporaryDirectory() as folder:
        photo = Path(folder) / "photo.jpg"
        make(photo, args.width, args.height)
        print(f"{args.width} x {args.height} pixels, {args.boxes} boxes; milliseconds, least of {args.repeats}")
        print(f"{'threads':>8} {' '.join(f'{name:>8}' for name in NAMES)}   peak MB (torch alone)")
        for threads in (1, 2):
            environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
            command = [sys.executable, __file__, *sys.argv[1:], "--row", str(photo)]
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            if done.returncode:
                raise SystemExit(done.stderr.strip().splitlines()[-1])
            found = json.loads(done.stdout)
            cells = " ".join(f"{found[name]:8.1f}" for name in NAMES)
            print(f"{threads:>8} {cells}   {found['peak MB']:.0f} ({found['torch alone MB']:.0f})", flush=True)


if __name__ == "__main__":
    main()
