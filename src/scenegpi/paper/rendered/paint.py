"""Stage -> picture, with a map of the thing that each pixel shows, from which the boxes are computed.

The backdrop (sky, hills and ground, a street, a room) is painted first and never annotated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from scenegpi.paper.rendered.brush import Brush, Colour, lighter, mixed
from scenegpi.paper.rendered.stage import Stage, Thing

COVERED = 96  # of 255: a pixel shows a thing that covers at least this much of it
NOBODY = -1
STRING = (120, 116, 112)
LIGHTS = ((1.0, 1.0, 1.0), (1.05, 0.98, 0.86), (0.9, 0.97, 1.05), (0.88, 0.86, 0.98))  # factors of red, green, blue
NOISE_SIDE = 768
SKIES: tuple[tuple[Colour, Colour], ...] = (  # top, horizon
    ((96, 174, 228), (214, 238, 247)),
    ((120, 150, 205), (253, 216, 164)),
    ((158, 174, 188), (222, 226, 226)),
    ((76, 72, 130), (246, 160, 128)),
)
GRASS: tuple[Colour, ...] = ((128, 186, 98), (152, 190, 104), (104, 170, 110), (176, 186, 104))
PAVEMENT: tuple[Colour, ...] = ((196, 192, 188), (182, 184, 190), (206, 196, 184))
KERB, STRIPE, ROAD = (226, 224, 220), (236, 222, 170), (112, 116, 126)
WALLS: tuple[Colour, ...] = ((238, 214, 190), (200, 220, 214), (214, 206, 226), (232, 226, 206), (226, 188, 174))
FLOORS: tuple[Colour, ...] = ((190, 146, 104), (168, 124, 88), (206, 174, 136), (150, 136, 128))


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
            (x1, y1), (x2, y2), _ = strings.pop()  # hidden near its end, where anything round may hang
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
    """The picture as a camera might have taken it (light, blur, grain); `strength` 0 leaves it unchanged."""
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


def gradient(size: tuple[int, int], top: Colour, bottom: Colour) -> Image.Image:
    """From one colour at the top to another at the bottom."""
    strip = Image.new("RGB", (1, 33))
    strip.putdata([mixed(top, bottom, k / 32) for k in range(33)])
    return strip.resize((1, size[1]), Image.Resampling.BILINEAR).resize(size, Image.Resampling.NEAREST)


def outdoors(rng: Random, size: tuple[int, int], horizon: float, street: bool) -> Image.Image:
    """A park or a street. `horizon` in pixels from the top."""
    (w, h), line = size, round(horizon)
    high, haze = rng.choices(SKIES, (5, 2.5, 2, 1.5))[0]
    image = Image.new("RGB", size)
    image.paste(gradient((w, line + 1), high, haze), (0, 0))
    draw = ImageDraw.Draw(image)
    for k in range(rng.randrange(1, 4)):
        tall, a, b = rng.uniform(0.05, 0.16) * h * (1 - 0.25 * k), rng.uniform(0, 9), rng.uniform(1.5, 8)
        ridge = [(x, line - tall * (0.5 + 0.4 * math.sin(a + b * x / w))) for x in range(0, w + 8, 8)]
        draw.polygon([(0, h), *ridge, (w, h)], fill=mixed(rng.choice(GRASS), haze, 0.66 - 0.17 * k))
    ground = rng.choice(PAVEMENT if street else GRASS)
    image.paste(gradient((w, h - line), mixed(ground, haze, 0.35), lighter(ground, -0.14)), (0, line))
    if street:
        top, low = line + (h - line) * rng.uniform(0.28, 0.4), line + (h - line) * rng.uniform(0.72, 0.85)
        draw.rectangle((0, top - 3, w, low + 4), fill=KERB)
        draw.rectangle((0, top, w, low), fill=ROAD)
        for x in range(-rng.randrange(60), w, 75):
            draw.rectangle((x, (top + low) / 2 - 2, x + 40, (top + low) / 2 + 2), fill=STRIPE)
    return image


def indoors(rng: Random, size: tuple[int, int], floor: float) -> Image.Image:
    """A room whose floor begins at `floor` pixels from the top."""
    (w, h), line = size, round(floor)
    wall, boards = rng.choice(WALLS), rng.choice(FLOORS)
    image = gradient(size, lighter(wall, 0.12), lighter(wall, -0.1))
    draw = ImageDraw.Draw(image)
    if rng.random() < 0.5:  # wallpaper
        step = rng.randrange(30, 60)
        for x in range(-rng.randrange(step), w, step):
            draw.rectangle((x, 0, x + step // 3, line), fill=lighter(wall, 0.16))
    image.paste(gradient((w, h - line), lighter(boards, -0.12), lighter(boards, 0.1)), (0, line))
    for k in range(-14, 15):
        draw.line((w / 2 + k * w / 14, line, w / 2 + k * w / 14 * 2.2, h), fill=lighter(boards, -0.22))
    draw.rectangle((0, line - 7, w, line), fill=lighter(wall, 0.6))
    return image
