"""Where a scene plays: sky, hills and ground, a street, a room. Painted first, never annotated."""

from __future__ import annotations

import math
from random import Random

from PIL import Image, ImageDraw

from scenegpi.paper.rendered.brush import Colour, lighter, mixed

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
