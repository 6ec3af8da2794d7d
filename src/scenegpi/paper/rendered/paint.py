"""Stage -> picture, with a map that says which thing each pixel shows; from the map come the boxes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from scenegpi.paper.rendered.backdrop import indoors, outdoors
from scenegpi.paper.rendered.brush import Brush
from scenegpi.paper.rendered.stage import Stage, Thing

COVERED = 96  # of 255: a pixel shows a thing that covers it at least so far
NOBODY = -1
STRING = (120, 116, 112)
LIGHTS = ((1.0, 1.0, 1.0), (1.05, 0.98, 0.86), (0.9, 0.97, 1.05), (0.88, 0.86, 0.98))  # factors of red, green, blue
NOISE_SIDE = 768


@dataclass
class Painted:
    """A picture before its damage, and what is where: `owner` (H, W) is the thing each pixel shows, or NOBODY;
    `full` (T,) the number of pixels each thing covers, visible or not."""

    image: Image.Image
    owner: NDArray[np.int16]
    full: NDArray[np.int64]


def paint(stage: Stage, rng: Random) -> Painted:
    """Paints the backdrop, then everything from far to near."""
    if stage.setting == "room":
        image = indoors(rng, stage.size, stage.far - 12)
    else:
        image = outdoors(rng, stage.size, stage.horizon, stage.setting == "street")
    owner = np.full((stage.size[1], stage.size[0]), NOBODY, np.int16)
    full = np.zeros(len(stage.things), np.int64)
    loss = [rng.uniform(1.8, 4.0) if rng.random() < stage.options.damage else 0 for _ in stage.things]
    strings = sorted(stage.strings, key=lambda string: -string[2])
    for thing in sorted(stage.things, key=lambda each: each.order):
        while strings and strings[-1][2] < thing.order:
            (x1, y1), (x2, y2), _ = strings.pop()  # it is not seen near its end: what hangs there may be anything round
            ends = (x1, y1, x1 + 0.75 * (x2 - x1), y1 + 0.75 * (y2 - y1))
            ImageDraw.Draw(image).line(ends, fill=STRING, width=2)
        if thing.grounded:
            _shadow(image, thing)
        brush = Brush(thing.frame, thing.drawing.extent, stage.size)
        thing.drawing.paint(brush)
        sheet = brush.finish()
        if loss[thing.number]:
            small = [max(round(side / loss[thing.number]), 1) for side in sheet.size]
            sheet = sheet.resize((small[0], small[1]), Image.Resampling.BOX).resize(sheet.size)
        image.paste(sheet, (brush.left, brush.top), sheet)
        covered = np.asarray(sheet.getchannel("A")) >= COVERED
        full[thing.number] = covered.sum()
        owner[brush.top : brush.top + sheet.height, brush.left : brush.left + sheet.width][covered] = thing.number
    return Painted(image, owner, full)


def _shadow(image: Image.Image, thing: Thing) -> None:
    extent, scale = thing.drawing.extent, thing.frame.scale
    w = max(round(0.7 * (extent.right - extent.left) * scale), 4)
    h = max(round(min(w * 0.2, 0.3 * scale)), 3)
    spot = _disc().resize((w, h), Image.Resampling.BILINEAR)
    image.paste((36, 34, 56), (round(thing.frame.x - w / 2), round(thing.frame.y - h * 0.55)), spot)


@cache
def _disc() -> Image.Image:
    """A soft dark spot."""
    y, x = np.mgrid[-1:1:48j, -1:1:48j]
    return Image.fromarray((120 * np.clip(1 - np.hypot(x, y), 0, 1) ** 0.8).astype(np.uint8))


def damage(image: Image.Image, rng: Random, strength: float) -> Image.Image:
    """The picture as a camera might have taken it (light, blur, grain); `strength` 0 leaves it as it is."""
    if strength <= 0:
        return image
    factors = rng.choices(LIGHTS, (5, 2, 2, 1))[0]
    contrast = rng.uniform(0.88, 1.08)
    image = image.point(
        [min(max(round((v - 128) * contrast * f + 128 * f), 0), 255) for f in factors for v in range(256)]
    )
    if rng.random() < strength:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.5, 1.3)))
    grain = rng.choice((0, 2, 4, 8)) * min(strength * 2.5, 1)
    x, y = rng.randrange(NOISE_SIDE - 640 + 1), rng.randrange(NOISE_SIDE - 640 + 1)
    noise = _noise()[y : y + image.height, x : x + image.width, None]
    pixels = np.asarray(image).astype(np.int16) + (noise * grain).astype(np.int16)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


@cache
def _noise() -> NDArray[np.float32]:
    """(768, 768) sums of four uniform numbers: near enough to normal, and the same on every machine."""
    return (np.random.default_rng(0).random((NOISE_SIDE, NOISE_SIDE, 4)).sum(axis=2) - 2).astype(np.float32) * 1.7
