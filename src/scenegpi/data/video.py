"""Frames of a video file (PyAV, extra `[video]`) or of a folder of pictures, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenegpi.data.images import SUFFIXES
from scenegpi.errors import DataError
from scenegpi.files import open_file

VIDEOS = (".mp4", ".mov", ".m4v", ".mkv", ".webm", ".avi", ".mpg", ".mpeg")
VIDEO_FORMATS = ("png", "mp4")
"""What can be drawn of one: a sheet of frames, a clip."""
MAX_PIXELS = 1 << 25
RATE = 25.0
"""Frames per second of a folder of pictures, and of a file that does not tell."""


@dataclass(frozen=True)
class Frame:
    """`number` counts all frames from 0, `seconds` is its time; `photo` is a path or (H, W, 3) bytes."""

    number: int
    seconds: float
    photo: Any


def video_of(photos: list[str] | None, every: int | None) -> Path | None:
    """The video of a call: a video file, or with --every a folder of frames; None where there is none."""
    paths = [Path(text) for text in photos or []]
    found = [path for path in paths if path.suffix.lower() in VIDEOS or (every is not None and path.is_dir())]
    if not found:
        if every is not None:
            raise DataError("--every", "needs a video file or a folder of frames")
        return None
    if len(paths) > 1:
        raise DataError(found[0], "give one video at a time, and no photos with it")
    return found[0]


def frames(path: str | Path, every: int = 1) -> Iterator[Frame]:
    """Every n-th frame of a video file, or picture of a folder in the order of their names."""
    path = Path(path)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file())
        if not files:
            raise DataError(path, "there is no picture in this folder")
        for k in range(0, len(files), every):
            yield Frame(k, k / RATE, files[k])
        return
    av = import_av()
    # A handle, not a name: a file that refers to others, or to the network, cannot open them.
    with open_file(path) as handle:
        try:
            with av.open(handle) as container:
                if not container.streams.video:
                    raise DataError(path, "there is no video in it")
                stream = container.streams.video[0]
                if stream.width * stream.height > MAX_PIXELS:
                    raise DataError(path, f"frames of {stream.width} x {stream.height} pixels are too large")
                for k, frame in enumerate(container.decode(stream)):
                    if k % every == 0:
                        seconds = k / frame_rate(stream) if frame.time is None else float(frame.time)
                        yield Frame(k, seconds, frame.to_ndarray(format="rgb24"))
        except av.error.FFmpegError as error:
            raise DataError(path, f"cannot be read as a video ({error.strerror or error})") from None


def video_rate(path: Path) -> float:
    """Frames per second."""
    if path.is_dir():
        return RATE
    av = import_av()
    with open_file(path) as handle:
        try:
            with av.open(handle) as container:
                return frame_rate(container.streams.video[0]) if container.streams.video else RATE
        except av.error.FFmpegError as error:
            raise DataError(path, f"cannot be read as a video ({error.strerror or error})") from None


def frame_rate(stream: Any) -> float:
    return float(stream.average_rate or 0) or RATE


def import_av() -> Any:
    """The module av; DataError that says what to install."""
    try:
        import av
    except ImportError:
        raise DataError("video", "PyAV is missing: pip install 'scenegpi[video]'") from None
    return av
