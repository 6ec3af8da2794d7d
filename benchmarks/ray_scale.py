"""Many layouts through `scenegpi predict`, in one process and by ray with as many actors: throughput and memory.

    python benchmarks/ray_scale.py [--images 10000 100000] [--boxes 12] [--jobs 1] [--backend onnx] [--shard 1024]

Layouts are random boxes and labels in a JSON lines file. Per run: images per second of the clock, start-up included and
without it (the second half of the images), and the largest memory of a process that predicts, halfway and at the end.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from onnx_speed import random_graph
from scenegpi.data import write_jsonl
from scenegpi.graph import SceneGraph
from scenegpi.models.shipped import model_vocabulary

MODEL = "vg150-layout"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--boxes", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--shard", type=int, default=1024)
    parser.add_argument("--backend", default="torch")
    options = parser.parse_args()
    table = Table("images", "engine", "per second", "second half, per second", "MB halfway", "MB at the end")
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        for images in options.images:
            write_jsonl(folder / "boxes.jsonl", layouts(images, options.boxes))
            for engine in ("local", "ray"):
                table.add_row(f"{images:,}", engine, *run(folder, images, engine, options))
    Console(width=110).print(table)


def layouts(images: int, boxes: int) -> Iterator[SceneGraph]:
    vocabulary, rng = model_vocabulary(MODEL), np.random.default_rng(0)
    return (random_graph(rng, vocabulary, boxes).replace(image_id=k) for k in range(images))


def run(folder: Path, images: int, engine: str, options: argparse.Namespace) -> list[str]:
    """Watches one run from outside: how many images are written, and how much memory its processes take."""
    out = folder / f"{engine}-{images}"
    words = ["predict", "--boxes", "boxes.jsonl", "--model", MODEL, "--backend", options.backend, "--formats", "none"]
    words += ["--out", str(out), "--jobs", str(options.jobs), "--engine", engine, "--shard", str(options.shard)]
    start = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", "from scenegpi.cli import main; main()", *words], cwd=folder)
    half, memory = 0.0, {False: 0.0, True: 0.0}
    while process.poll() is None:
        time.sleep(0.2)
        done = written(out)
        if not half and 2 * done >= images:
            half, at_half = time.monotonic(), done
        memory[bool(half)] = max(memory[bool(half)], megabytes(process.pid, engine))
    end = time.monotonic()
    if process.returncode:
        raise SystemExit(f"{engine}: exit code {process.returncode}")
    later = (images - at_half) / (end - half) if half else float("nan")
    return [f"{images / (end - start):,.0f}", f"{later:,.0f}", f"{memory[False]:,.0f}", f"{memory[True]:,.0f}"]


def written(out: Path) -> int:
    """Images in the files so far: lines are about equally long, so bytes tell."""
    lines = out / "predictions.jsonl"
    if lines.exists():
        return count(lines)
    return sum(count(file) for file in out.glob("shards/*.jsonl"))


_counted: dict[Path, tuple[int, int]] = {}


def count(file: Path) -> int:
    """Lines of a file that only grows; what was counted before is not read again."""
    place, lines = _counted.get(file, (0, 0))
    with file.open("rb") as handle:
        handle.seek(place)
        for block in iter(lambda: handle.read(1 << 20), b""):
            lines += block.count(b"\n")
        _counted[file] = handle.tell(), lines
    return lines


def megabytes(pid: int, engine: str) -> float:
    """Resident memory of the process that predicts: the command itself, or the largest of ray's actors."""
    if engine == "local":
        return resident(Path(f"/proc/{pid}"))
    return max((resident(each) for each in Path("/proc").glob("[0-9]*") if is_actor(each)), default=0.0)


def is_actor(process: Path) -> bool:
    try:
        return (process / "cmdline").read_bytes().startswith(b"ray::") and b"MapWorker" in (
            process / "cmdline"
        ).read_bytes()
    except OSError:
        return False


def resident(process: Path) -> float:
    try:
        return int((process / "statm").read_text().split()[1]) * 4096 / 1e6
    except OSError:
        return 0.0


if __name__ == "__main__":
    main()
