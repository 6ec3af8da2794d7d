"""Many layouts through `scenegpi predict`, in one process and by ray with as many actors: throughput and memory.

    python benchmarks/ray_scale.py [--images 10000 100000] [--boxes 12] [--jobs 1] [--backend onnx] [--input jsonl]
    python benchmarks/ray_scale.py --input photos --images 400 --shard 100

Layouts are random boxes and labels; photos are drawn scenes as bytes in a column. Per run, start included: images per
second of the clock, per CPU second of the processes that predict (a busy machine matters little to it), and per CPU
second of all processes together, which ray's own add to as long as the clock runs; the largest memory of a process that
predicts, halfway and at the end, and of the command; and what was written.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from scenegpi.data import open_dataset, write_jsonl
from scenegpi.models.shipped import model_vocabulary
from scenegpi.paper.rendered import render_folder

LAYOUT, PHOTO = "vg150-layout", "vg150-photo"
TICK, PAGE = 1 / os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--boxes", type=int, default=12)
    parser.add_argument("--engines", nargs="+", default=["local", "ray"])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--shard", type=int, default=1024)
    parser.add_argument("--backend", default="torch")
    parser.add_argument("--input", choices=("parquet", "jsonl", "photos"), default="parquet")
    options = parser.parse_args()
    cost = ("per s", "per CPU s, predicting", "per CPU s, all", "MB halfway", "MB at the end", "MB of the command")
    heads = (*cost, "bytes per image")
    table = Table("images", "engine", *heads)
    console = Console(width=120)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        for images in options.images:
            if options.input == "photos":
                file = write_photos(folder, images)
            else:
                file = write_layouts(folder / f"boxes.{options.input}", images, options.boxes)
            for engine in options.engines:
                run = Run(folder, file, images, engine, options)
                row = [f"{images:,}", engine, *(f"{value:,.1f}" for value in run.figures())]
                console.print(dict(zip(("images", "engine", *heads), row, strict=True)))  # a long run may be broken off
                table.add_row(*row)
    console.print(table)


def write_photos(folder: Path, images: int) -> Path:
    render_folder(folder / "scenes", 20, seed=0)
    drawn = [path.read_bytes() for path in sorted((folder / "scenes" / "images").iterdir())]
    table = pa.table({"id": list(range(images)), "image": [drawn[i % len(drawn)] for i in range(images)]})
    pq.write_table(table, folder / "photos.parquet", row_group_size=100)
    return folder / "photos.parquet"


def write_layouts(file: Path, images: int, boxes: int) -> Path:
    rng, names = np.random.default_rng(0), np.array(model_vocabulary(LAYOUT).objects)
    low = rng.uniform(0, 400, (images, boxes, 2))
    corners = np.concatenate([low, low + rng.uniform(10, 240, low.shape)], 2).round(1)
    labels = names[rng.integers(0, len(names), images * boxes)]
    table = {"id": np.arange(images), "width": np.full(images, 640), "height": np.full(images, 640)}
    table |= {"boxes": lists(lists(pa.array(corners.ravel()), 4), boxes), "labels": lists(pa.array(labels), boxes)}
    parquet = file.with_suffix(".parquet")
    pq.write_table(pa.table(table), parquet, row_group_size=8192)
    if file != parquet:
        write_jsonl(file, open_dataset(parquet))
    return file


def lists(values: pa.Array, each: int) -> pa.Array:
    """Values in a row -> lists of this many."""
    return pa.ListArray.from_arrays(pa.array(np.arange(0, len(values) + 1, each), pa.int32()), values)


class Run:
    """One run, watched from outside: how many images are written, what its processes take of CPU and memory."""

    def __init__(self, folder: Path, file: Path, images: int, engine: str, options: argparse.Namespace) -> None:
        self.out, self.images = folder / f"{engine}-{images}", images
        model = PHOTO if options.input == "photos" else LAYOUT
        words = ["predict", str(file), "--model", model, "--backend", options.backend, "--formats", "none"]
        words += ["--out", str(self.out), "--jobs", str(options.jobs)]
        words += ["--engine", engine, "--shard", str(options.shard)]
        self.cpu: dict[int, float] = {}
        self.predicting: set[int] = set()
        self.memory = {"half": 0.0, "end": 0.0, "command": 0.0}
        self.halfway = False
        start = time.monotonic()
        command = [sys.executable, "-c", "from scenegpi.cli import main; main()", *words]
        process = subprocess.Popen(command, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"})
        while process.poll() is None:
            time.sleep(0.5)
            self.look(process.pid)
        self.seconds = time.monotonic() - start
        if process.returncode:
            raise SystemExit(f"{engine}: exit code {process.returncode}")

    def look(self, pid: int) -> None:
        family = {one: values for one, *values in descendants(pid)}
        self.cpu |= {one: cpu for one, (cpu, _, _) in family.items()}
        actors = {one for one, (_, _, actor) in family.items() if actor}
        self.predicting |= actors
        memory = {one: megabytes for one, (_, megabytes, _) in family.items()}
        self.halfway = self.halfway or 2 * written(self.out) >= self.images
        for name, some in (("end" if self.halfway else "half", actors or family), ("command", {pid})):
            self.memory[name] = max([self.memory[name], *(memory[one] for one in some if one in memory)])

    def figures(self) -> Iterator[float]:
        yield self.images / self.seconds
        yield self.images / sum(cpu for one, cpu in self.cpu.items() if one in (self.predicting or self.cpu))
        yield self.images / sum(self.cpu.values())
        yield from self.memory.values()
        yield sum(file.stat().st_size for file in self.out.rglob("*") if file.is_file()) / self.images


def descendants(pid: int) -> Iterator[tuple[int, float, float, bool]]:
    """Of a process and all below it: number, CPU seconds, resident MB, and whether it is an actor of ray's."""
    parents, found = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            pages = int((folder / "statm").read_text().split()[1])
            actor = b"ShardActor" in (folder / "cmdline").read_bytes()
        except OSError:
            continue
        one = int(folder.name)
        parents[one] = int(fields[1])
        found[one] = (one, (int(fields[11]) + int(fields[12])) * TICK, pages * PAGE, actor)
    for one in found:
        above = one
        while above != pid and above in parents:
            above = parents[above]
        if above == pid:
            yield found[one]


def written(out: Path) -> int:
    """Images in the files so far."""
    lines = out / "predictions.jsonl"
    return sum(map(count, [lines] if lines.exists() else out.glob("shards/*.jsonl")))


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


if __name__ == "__main__":
    main()
