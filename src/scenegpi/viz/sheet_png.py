"""Shapes -> PNG. Edges are smooth: a pixel takes as much of a shape's colour as the shape covers of it.

For round and slanted shapes the share comes from the signed distance d of the pixel's centre to the outline, negative
inside: clip(1/2 - d, 0, 1). Straight frames lie on whole pixels, so that their lines are sharp.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from scenegpi.viz.sheet import POINT, Area, Line, Photo, Rect, Shape, Triangle, Words
from scenegpi.viz.text import BASELINE, font, runs

Array = NDArray[np.float32]
LEVEL = 3
"""Of compression, 0 to 9: with a photo, the usual 6 takes twice the time for a file a few percent smaller."""


def png(shapes: Sequence[Shape], width: float, height: float, dpi: int) -> bytes:
    """A PNG file of a sheet of `width` x `height` inches."""
    paper = Paper(width, height, dpi)
    draw_shapes(paper, shapes)
    out = io.BytesIO()
    Image.fromarray(paper.pixels).save(out, "PNG", compress_level=LEVEL)
    return out.getvalue()


def draw_shapes(paper: Paper, shapes: Sequence[Shape]) -> None:
    """Puts shapes on paper, the first at the bottom."""
    for shape in shapes:
        if isinstance(shape, Rect):
            paper.rect(shape)
        elif isinstance(shape, Line):
            paper.line(shape)
        elif isinstance(shape, Triangle):
            paper.triangle(shape)
        elif isinstance(shape, Words):
            paper.words(shape)
        else:
            paper.photo(shape)


class Paper:
    """The pixels (H, W, 3) and how shapes are put on them."""

    def __init__(self, width: float, height: float, dpi: int) -> None:
        self.dpi = dpi
        self.pixels = np.full((max(round(height * dpi), 1), max(round(width * dpi), 1), 3), 255, dtype=np.uint8)

    def rect(self, shape: Rect) -> None:
        x1, y1, x2, y2 = (side * self.dpi for side in shape.area)
        half = shape.line * POINT * self.dpi / 2 if shape.stroke else 0.0
        if shape.radius or shape.dashed:
            self._round(shape, (x1, y1, x2, y2), half)
            return
        x1, y1, x2, y2 = (float(np.floor(side + 0.5)) for side in (x1, y1, x2, y2))
        if shape.fill:
            self._fill((x1, y1, x2, y2), shape.fill, shape.alpha, shape.clip)
        if shape.stroke:
            top, bottom, left, right = y1 + half, max(y2 - half, y1 + half), x1 + half, max(x2 - half, x1 + half)
            for strip in (
                (x1 - half, y1 - half, x2 + half, top),
                (x1 - half, bottom, x2 + half, y2 + half),
                (x1 - half, top, left, bottom),
                (right, top, x2 + half, bottom),
            ):
                self._fill(strip, shape.stroke, shape.alpha, shape.clip)

    def line(self, shape: Line) -> None:
        a, b = np.array(shape.start) * self.dpi, np.array(shape.end) * self.dpi
        self._stroke(a, b, shape.colour, shape.line * POINT * self.dpi / 2, shape.alpha, shape.clip)

    def triangle(self, shape: Triangle) -> None:
        corners = np.array(shape.corners) * self.dpi
        grid = self._grid(np.concatenate([corners.min(axis=0), corners.max(axis=0)]), 1.0, None)
        if grid is None:
            return
        window, x, y = grid
        distance = np.full((y.size, x.size), -np.inf, dtype=np.float32)
        (ax, ay), (bx, by) = corners[1] - corners[0], corners[2] - corners[0]
        turn = 1.0 if ax * by >= ay * bx else -1.0
        for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            way = (end - start) / max(float(np.hypot(*(end - start))), 1e-9) * turn
            distance = np.maximum(distance, (x - start[0]) * way[1] - (y - start[1]) * way[0])
        self._blend(window, np.clip(0.5 - distance, 0, 1), shape.colour)

    def words(self, shape: Words) -> None:
        size = shape.points * POINT * self.dpi
        pieces = [(piece, font(file, size)) for piece, file in runs(shape.text, shape.bold)]
        lengths = [face.getlength(piece) for piece, face in pieces]
        left = shape.at[0] * self.dpi - {"left": 0.0, "middle": 0.5, "right": 1.0}[shape.anchor] * sum(lengths)
        baseline = round(shape.at[1] * self.dpi + BASELINE * size)
        high, x0 = int(1.3 * size) + 2, int(np.floor(left)) - 2
        mask = Image.new("L", (int(sum(lengths)) + 6 + int(size), 2 * high))
        pen = ImageDraw.Draw(mask)
        for (piece, face), length in zip(pieces, lengths, strict=True):
            pen.text((left - x0, high), piece, fill=255, font=face, anchor="ls")
            left += length
        self._paste(np.asarray(mask, dtype=np.float32) / np.float32(255), x0, baseline - high, shape.colour)

    def photo(self, shape: Photo) -> None:
        x1, y1, x2, y2 = (int(np.floor(side * self.dpi + 0.5)) for side in shape.area)
        size = (max(x2 - x1, 1), max(y2 - y1, 1))
        small = Image.fromarray(shape.pixels).resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
        room = self.pixels[y1 : y1 + size[1], x1 : x1 + size[0]]
        room[:] = np.asarray(small)[: room.shape[0], : room.shape[1]]

    def _round(self, shape: Rect, area: Area, half: float) -> None:
        """A rectangle with round corners."""
        x1, y1, x2, y2 = area
        grid = self._grid(np.array(area), half + 1, shape.clip)
        if grid is None:
            return
        window, x, y = grid
        radius = min(shape.radius * self.dpi, (x2 - x1) / 2, (y2 - y1) / 2)
        across = np.abs(x - (x1 + x2) / 2) - ((x2 - x1) / 2 - radius)
        down = np.abs(y - (y1 + y2) / 2) - ((y2 - y1) / 2 - radius)
        distance = (
            np.hypot(np.maximum(across, 0), np.maximum(down, 0)) + np.minimum(np.maximum(across, down), 0) - radius
        )
        if shape.fill:
            self._blend(window, shape.alpha * np.clip(0.5 - distance, 0, 1), shape.fill)
        if shape.stroke and not shape.dashed:
            self._blend(window, shape.alpha * np.clip(0.5 + half - np.abs(distance), 0, 1), shape.stroke)
        elif shape.stroke:
            for a, b in dashes(area, radius, 2 * half):
                self._stroke(a, b, shape.stroke, half, shape.alpha, shape.clip)

    def _stroke(
        self, a: NDArray[np.float64], b: NDArray[np.float64], colour: str, half: float, alpha: float, clip: Area | None
    ) -> None:
        """A line `half` pixels to either side of a b."""
        grid = self._grid(np.concatenate([np.minimum(a, b), np.maximum(a, b)]), half + 1, clip)
        if grid is None:
            return
        window, x, y = grid
        way = b - a
        share = np.clip(((x - a[0]) * way[0] + (y - a[1]) * way[1]) / max(float(way @ way), 1e-9), 0, 1)
        distance = np.hypot(x - a[0] - share * way[0], y - a[1] - share * way[1]) - half
        self._blend(window, alpha * np.clip(0.5 - distance, 0, 1), colour)

    def _fill(self, area: Area, colour: str, alpha: float, clip: Area | None) -> None:
        """An upright rectangle; a pixel at its border takes a part of the colour."""
        limits = self._limits(clip)
        x1, x2 = (min(max(side, limits[0]), limits[2]) for side in area[::2])
        y1, y2 = (min(max(side, limits[1]), limits[3]) for side in area[1::2])
        if x2 <= x1 or y2 <= y1:
            return
        columns, rows = _cover(x1, x2), _cover(y1, y2)
        window = (slice(int(y1), int(y1) + rows.size), slice(int(x1), int(x1) + columns.size))
        whole = rows.min() == columns.min() == 1
        self._blend(window, np.full((1, 1), alpha) if whole else alpha * rows[:, None] * columns, colour)

    def _grid(
        self, area: NDArray[np.float64], margin: float, clip: Area | None
    ) -> tuple[tuple[slice, slice], Array, Array] | None:
        """The window of pixels around an area, and their centres x (w,) and y (h, 1); None where it is empty."""
        limits = self._limits(clip)
        low = np.maximum(np.floor(area[:2] - margin), limits[:2]).astype(int)
        high = np.minimum(np.ceil(area[2:] + margin), limits[2:]).astype(int)
        if (high <= low).any():
            return None
        x = np.arange(low[0], high[0], dtype=np.float32) + np.float32(0.5)
        y = np.arange(low[1], high[1], dtype=np.float32)[:, None] + np.float32(0.5)
        return (slice(low[1], high[1]), slice(low[0], high[0])), x, y

    def _limits(self, clip: Area | None) -> tuple[float, float, float, float]:
        high, wide = self.pixels.shape[:2]
        if clip is None:
            return 0, 0, wide, high
        x1, y1, x2, y2 = (float(np.floor(side * self.dpi + 0.5)) for side in clip)
        return max(x1, 0), max(y1, 0), min(x2, wide), min(y2, high)

    def _paste(self, cover: NDArray[np.floating], x: int, y: int, colour: str) -> None:
        """A colour through a mask (h, w) whose top left pixel is (x, y)."""
        high, wide = self.pixels.shape[:2]
        top, left, bottom, right = max(y, 0), max(x, 0), min(y + cover.shape[0], high), min(x + cover.shape[1], wide)
        if bottom > top and right > left:
            self._blend(
                (slice(top, bottom), slice(left, right)), cover[top - y : bottom - y, left - x : right - x], colour
            )

    def _blend(self, window: tuple[slice, slice], cover: NDArray[np.floating], colour: str) -> None:
        """Each pixel takes its share of the colour, (h, w) or one (1, 1) for all, in steps of 1/256: fast enough."""
        part = self.pixels[window]
        ink = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)], dtype=np.uint16)
        share = np.rint(256 * cover).astype(np.uint16)[..., None]
        part[:] = (part * (256 - share) + (ink * share + 128)) >> 8


def dashes(area: Area, radius: float, line: float) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Short lines along a rectangle with round corners: 3.7 line widths of ink, then 1.6 of gap, or nearly."""
    x1, y1, x2, y2 = area
    turn = np.linspace(0, np.pi / 2, 7)
    corners = (
        (x2 - radius, y1 + radius, -0.5),
        (x2 - radius, y2 - radius, 0),
        (x1 + radius, y2 - radius, 0.5),
        (x1 + radius, y1 + radius, 1),
    )
    path = np.concatenate([
        np.column_stack([x + radius * np.cos(turn + start * np.pi), y + radius * np.sin(turn + start * np.pi)])
        for x, y, start in corners
    ])  # fmt: skip
    path = np.concatenate([path, path[:1]])
    run = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(path, axis=0).T))])
    count = max(round(run[-1] / (5.3 * line)), 1)
    found: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
    for start in np.linspace(0, run[-1], count, endpoint=False):
        # round ends reach half a line further on either side
        stops = np.array([start + line / 2, start + 3.2 * line])
        inner = run[(run > stops[0]) & (run < stops[1])]
        at = np.sort(np.concatenate([stops, inner]))
        points = np.column_stack([np.interp(at, run, path[:, k]) for k in (0, 1)])
        found += pairwise(points)
    return found


def _cover(start: float, end: float) -> Array:
    """How much of each pixel from the one that holds `start` lies before `end`."""
    edge = np.arange(int(start), int(np.ceil(end)), dtype=np.float32)
    return np.minimum(edge + 1, np.float32(end)) - np.maximum(edge, np.float32(start))
