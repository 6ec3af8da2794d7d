"""Frames of a video file (PyAV, extra `[video]`) or of a folder of pictures, one at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenegpi.data.images import SUFFIXES
from scenegpi.errors import DataError, require
from scenegpi.files import open_file

VIDEOS = (".mp4", ".mov", ".m4v", ".mkv", ".webm", ".avi", ".mpg", ".mpeg")
VIDEO_FORMATS = ("png", "mp4")
"""Formats in which a video is drawn: a sheet of frames, a clip."""
CONTAINERS = "mov,matroska,avi,mpeg,mpegts,mpegvideo"
MAX_PIXELS = 1 << 25
RATE = 25.0
"""Frames per second of a folder of pictures, and of a file that does not say."""


@dataclass(frozen=True)
class Frame:
    """`number` counts all frames from 0, `seconds` is its time; `photo` is a path or (H, W, 3) bytes."""

    number: int
    seconds: float
    photo: Any


def video_of(photos: list[str] | None, every: int | None) -> Path | None:
    """The video among the arguments: a video file, or with --every a folder of frames; None without either."""
    paths = [Path(text) for text in photos or []]
    found = [path for path in paths if path.suffix.lower() in VIDEOS or (every is not None and path.is_dir())]
    if not found:
        if every is not None:
            raise DataError("--every", "needs a video file or a folder of frames")
        return None
    if len(paths) > 1:
        raise DataError(found[0], "give one video at a time, and no photos with it")
    return found[0]


def frames(path: str | Path, every: int = 1, without: Collection[str] = ()) -> Iterator[Frame]:
    """Every n-th frame of a video file, or picture of a folder in name order, except for the names in `without`."""
    path = Path(path)
    if path.is_dir():
        found = (file for file in path.iterdir() if file.name not in without)
        files = sorted(file for file in found if file.suffix.lower() in SUFFIXES and file.is_file())
        if not files:
            raise DataError(path, "contains no pictures")
        for k in range(0, len(files), every):
            yield Frame(k, k / RATE, files[k])
        return
    with _stream(path) as (container, stream):
        for k, frame in enumerate(container.decode(stream)):
            _check_size(path, frame)
            if k % every == 0:
                seconds = k / frame_rate(stream) if frame.time is None else float(frame.time)
                yield Frame(k, seconds, frame.to_ndarray(format="rgb24"))


@contextmanager
def _stream(path: Path) -> Iterator[tuple[Any, Any]]:
    """An open video and its first stream of frames; DataError for what cannot be read."""
    av = import_av()
    with open_file(path) as handle:
        try:
            # By a handle, and only true containers: a playlist would open the files that it names.
            options = {"format_whitelist": CONTAINERS}
            with av.open(handle, options=options, metadata_errors="replace") as container:
                if not container.streams.video:
                    raise DataError(path, "contains no video")
                stream = container.streams.video[0]
                if stream.codec_context is None:
                    raise DataError(path, "cannot be read as a video (an unknown codec)")
                _check_size(path, stream)
                stream.codec_context.options = {"max_pixels": str(MAX_PIXELS)}  # for later frames, which may be larger
                yield container, stream
        except DataError:
            raise
        except Exception as error:  # decoders fail in many ways on a broken file
            said = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise DataError(path, f"cannot be read as a video ({said})") from None


def _check_size(path: Path, what: Any) -> None:
    if what.width * what.height > MAX_PIXELS:
        raise DataError(path, f"frames of {what.width} x {what.height} pixels are too large")


def video_rate(path: Path) -> float:
    """Frames per second."""
    if path.is_dir():
        return RATE
    with _stream(path) as (_, stream):
        return frame_rate(stream)


def frame_rate(stream: Any) -> float:
    return float(stream.average_rate or 0) or RATE


def import_av() -> Any:
    """The module av; DataError that says what to install."""
    require("video", "video", "av")
    import av

    return av
