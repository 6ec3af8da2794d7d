"""Frames of a video with their boxes: as a clip, or some of them on one sheet. Objects keep their number and colour."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from scenegpi.data.video import import_av
from scenegpi.files import whole_file
from scenegpi.graph import SceneGraph
from scenegpi.viz.canvas import Canvas
from scenegpi.viz.palette import INK, MUTED
from scenegpi.viz.panels import colours_of, draw_boxes, draw_canvas
from scenegpi.viz.sheet import Sheet
from scenegpi.viz.text import shortened
from scenegpi.vocabulary import spoken

WIDE, DPI, LINES = 6.4, 100, 4
"""Inches of a frame, pixels per inch, and relations written below it."""
_LINE = 0.22
COLUMNS, MOST = 4, 12

Pixels = NDArray[np.uint8]


def frame_picture(photo: Any, graph: SceneGraph, numbers: Sequence[int], seconds: float) -> Pixels:
    """(H, W, 3) a frame with its boxes, each with the number of its object, and its best relations below."""
    canvas = Canvas.of(graph, photo)
    tall = WIDE * canvas.height / canvas.width
    sheet = Sheet(WIDE, tall + _LINE * (LINES + 1))
    panel = sheet.panel(0, 0, WIDE, tall, size=canvas.size)
    draw_canvas(panel, canvas)
    names = [f"{spoken(name)} #{number}" for name, number in zip(graph.names, numbers, strict=True)]
    draw_boxes(panel, canvas, names, colours_of(numbers))
    sheet.text((WIDE - 0.1, tall + _LINE / 2), f"{seconds:.2f} s", 9, MUTED, anchor="right")
    for k, triplet in enumerate(graph.triplets(top=LINES)):
        words = f"{names[triplet.subject_index]} {triplet.predicate} {names[triplet.object_index]}"
        sheet.text((0.1, tall + _LINE * (k + 0.5)), f"{shortened(words, 70)}  {triplet.score:.2f}", 9, INK)
    return np.asarray(sheet.image(DPI))


class FrameSheet:
    """Keeps evenly spread pictures of a stream of any length, and puts them on one sheet."""

    def __init__(self) -> None:
        self.kept: list[Pixels] = []
        self._seen, self._every = 0, 1

    def add(self, picture: Pixels) -> None:
        if self._seen % self._every == 0:
            self.kept.append(picture)
            if len(self.kept) > 2 * MOST:
                self.kept, self._every = self.kept[::2], 2 * self._every
        self._seen += 1

    def save(self, target: Path) -> None:
        """Writes a PNG of at most `MOST` pictures."""
        if not self.kept:
            return
        shown = [self.kept[k] for k in np.unique(np.linspace(0, len(self.kept) - 1, MOST).round().astype(int))]
        size = (320, round(320 * shown[0].shape[0] / shown[0].shape[1]))
        columns = min(COLUMNS, len(shown))
        sheet = Image.new("RGB", (columns * (size[0] + 8), -(-len(shown) // columns) * (size[1] + 8)), "white")
        for k, picture in enumerate(shown):
            small = Image.fromarray(picture).resize(size, Image.Resampling.LANCZOS)
            sheet.paste(small, ((k % columns) * (size[0] + 8) + 4, (k // columns) * (size[1] + 8) + 4))
        with whole_file(target) as part:
            sheet.save(part, "PNG")


@contextmanager
def open_clip(target: Path, rate: float) -> Iterator[Callable[[Pixels], None]]:
    """An MP4 file, whole or not at all; yields the function that adds a picture."""
    av, stream = import_av(), None  # type: Any, Any
    with whole_file(target) as part, av.open(str(part), "w", format="mp4") as container:

        def add(picture: Pixels) -> None:
            nonlocal stream
            if stream is None:
                stream = container.add_stream("libx264", rate=Fraction(rate).limit_denominator(1000))
                stream.height, stream.width = (side - side % 2 for side in picture.shape[:2])
                stream.pix_fmt = "yuv420p"
            cut = np.ascontiguousarray(picture[: stream.height, : stream.width])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(cut, format="rgb24")))

        yield add
        if stream is not None:
            container.mux(stream.encode())


@contextmanager
def film(sheet: Path | None, clip: Path | None, rate: float) -> Iterator[Callable[..., None]]:
    """Gives `add(photo, graph, numbers, seconds)`; writes the sheet and the clip, whole or not at all."""
    pages = FrameSheet()
    with open_clip(clip, rate) if clip is not None else nullcontext() as video:

        def add(photo: Any, graph: SceneGraph, numbers: Sequence[int], seconds: float) -> None:
            picture = frame_picture(photo, graph, numbers, seconds)
            pages.add(picture)
            if video is not None:
                video(picture)

        yield add
    if sheet is not None:
        pages.save(sheet)
