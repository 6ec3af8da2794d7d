"""Frames per second of `scenegpi predict video.mp4`: a photo that a camera pans over, 640 x 480.

    python benchmarks/video_speed.py [--frames 60] [--every 2] [--keep FOLDER]

The command runs twice, on a few frames and on all of them; start-up falls out of the difference. Per output: frames
predicted per second of the clock and per CPU second, and how many things were counted in how many boxes. Of a video
only one frame in `--every` is predicted, but all are decoded. `--keep` keeps the clip and what was written.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import av
import numpy as np
from matplotlib.cbook import get_sample_data
from PIL import Image
from rich.console import Console
from rich.table import Table

from timing import scenegpi

FEW = 4
SIZE = (640, 480)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--every", type=int, default=2)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    table = Table("written", "frames per s", "per CPU s", "boxes", "things")
    with tempfile.TemporaryDirectory() as text:
        folder = options.keep or Path(text)
        folder.mkdir(parents=True, exist_ok=True)
        write_clip(folder / "pan.mp4", options.frames)
        most = -(-options.frames // options.every)
        for formats in ("none", "png,mp4"):
            out = folder / f"out-{formats.replace(',', '-')}"
            words = f"predict pan.mp4 --every {options.every} --formats {formats} --out {out.name} --limit"
            (clock, cpu), (more_clock, more_cpu) = (scenegpi(f"{words} {limit}", folder) for limit in (FEW, most))
            rows = [json.loads(line) for line in (out / "predictions.jsonl").read_text().splitlines()]
            things = [one["thing"] for row in rows for one in row["objects"]]
            rates = ((most - FEW) / (more_clock - clock), (most - FEW) / (more_cpu - cpu))
            table.add_row(formats, *(f"{rate:.1f}" for rate in rates), str(len(things)), str(len(set(things))))
    Console(width=100).print(table)


def write_clip(path: Path, frames: int) -> None:
    """A window of the photo that moves down and to the right."""
    with get_sample_data("grace_hopper.jpg") as file:
        photo = Image.open(file).convert("RGB")
    wide, high = photo.size
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        for t in np.linspace(0, 1, frames):
            left, top = t * wide / 8, t * high / 3
            window = photo.resize(SIZE, Image.Resampling.BILINEAR, (left, top, left + wide * 7 / 8, top + high * 0.6))
            container.mux(stream.encode(av.VideoFrame.from_image(window)))
        container.mux(stream.encode())


if __name__ == "__main__":
    main()
