"""Stage -> picture, with a map that says which thing each pixel shows; from the map come the boxes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from scenegpi.paper.rendered.backdrop import SKIES, indoors, outdoors
from scenegpi.paper.rendered.brush import Brush
from scenegpi.paper.rendered.stage import Line, Stage, Thing

COVERED = 96  # of 255: a pixel shows a thing that covers it at least so far
NOBODY = -1


@dataclass
class Painted:
    """A picture before its damage, and what is where: `owner` (H, W) is the thing each pixel shows, or NOBODY;
    `full` (T,) the number of pixels each thing covers, visible or not."""

    image: Image.Image
    owner: NDArray[np.int16]
    full: NDArray[np.int64]


def paint(stage: Stage, rng: Random) -> Painted:
    """Paints the backdrop, then everything from far to near."""
    light = rng.choices(list(SKIES), (5, 2.5, 2, 1.5))[0]
    if stage.setting == "room":
        image = indoors(rng, stage.size, stage.far - 12)
        haze = None
    else:
        image = outdoors(rng, stage.size, stage.horizon, stage.setting, light, stage.far)
        haze = SKIES[light][1]
    owner = np.full((stage.size[1], stage.size[0]), NOBODY, np.int16)
    full = np.zeros(len(stage.things), np.int64)
    soft = [rng.random() < stage.options.damage for _ in stage.things]
    loss = [rng.uniform(1.8, 4.0) for _ in stage.things]
    queue: list[tuple[float, int, Thing | Line]] = [(t.order, k, t) for k, t in enumerate(stage.things)]
    queue += [(line.order, len(queue) + k, line) for k, line in enumerate(stage.lines)]
    for _, number, item in sorted(queue, key=lambda row: row[:2]):
        if isinstance(item, Line):
            _string(image, item)
            continue
        _shadow(image, item)
        brush = Brush(item.frame, item.drawing.extent, stage.size)
        item.drawing.paint(brush)
        sheet = brush.finish()
        if soft[number]:
            sheet = _soften(sheet, loss[number])
        if haze is not None and item.frame.scale < 90:
            share = 0.3 * (1 - item.frame.scale / 90)
            alpha = sheet.getchannel("A")
            sheet = Image.blend(sheet.convert("RGB"), Image.new("RGB", sheet.size, haze), share)
            sheet.putalpha(alpha)
        image.paste(sheet, (brush.left, brush.top), sheet)
        covered = np.asarray(sheet.getchannel("A")) >= COVERED
        full[number] = covered.sum()
        owner[brush.top : brush.top + sheet.height, brush.left : brush.left + sheet.width][covered] = number
    return Painted(image, owner, full)


def _soften(sheet: Image.Image, loss: float) -> Image.Image:
    small = (max(round(sheet.width / loss), 1), max(round(sheet.height / loss), 1))
    return sheet.resize(small, Image.Resampling.BOX).resize(sheet.size, Image.Resampling.BILINEAR)


@cache
def _disc() -> Image.Image:
    """A soft dark spot."""
    y, x = np.mgrid[-1:1:48j, -1:1:48j]
    return Image.fromarray((120 * np.clip(1 - np.hypot(x, y), 0, 1) ** 0.8).astype(np.uint8))


def _shadow(image: Image.Image, thing: Thing) -> None:
    if not thing.shadow:
        return
    w = max(round(thing.shadow * thing.frame.scale * 1.25), 4)
    h = max(round(min(w * 0.2, 0.3 * thing.frame.scale)), 3)
    spot = _disc().resize((w, h), Image.Resampling.BILINEAR)
    image.paste((36, 34, 56), (round(thing.frame.x - w / 2), round(thing.frame.y - h * 0.55)), spot)


def _string(image: Image.Image, line: Line) -> None:
    """Painted at twice the size over its own box only."""
    left, top = (math.floor(min(line.start[k], line.end[k])) - 3 for k in (0, 1))
    right, bottom = (math.ceil(max(line.start[k], line.end[k])) + 3 for k in (0, 1))
    mask = Image.new("L", ((right - left) * 2, (bottom - top) * 2))
    draw = ImageDraw.Draw(mask)
    steps = 12 if line.fades else 1
    for k in range(steps):
        ends = [((p[0] - left) * 2, (p[1] - top) * 2) for p in (_along(line, k / steps), _along(line, (k + 1) / steps))]
        strength = round(200 * max(1 - 1.25 * k / steps, 0)) if line.fades else 255
        draw.line([*ends[0], *ends[1]], fill=strength, width=max(round(line.width * 2), 2))
    image.paste(line.colour, (left, top), mask.reduce(2))


def _along(line: Line, t: float) -> tuple[float, float]:
    return line.start[0] + t * (line.end[0] - line.start[0]), line.start[1] + t * (line.end[1] - line.start[1])
