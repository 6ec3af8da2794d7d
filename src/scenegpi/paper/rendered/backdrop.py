"""Where a scene plays: sky, hills and ground, water, a street, a room. Painted first, never annotated."""

from __future__ import annotations

import math
from random import Random

from PIL import Image, ImageDraw

from scenegpi.paper.rendered.palette import Colour, lighter, mixed, pick

TIMES = 2
SKIES: dict[str, tuple[Colour, Colour]] = {  # top, horizon
    "day": ((96, 174, 228), (214, 238, 247)),
    "golden": ((120, 150, 205), (253, 216, 164)),
    "overcast": ((158, 174, 188), (222, 226, 226)),
    "dusk": ((76, 72, 130), (246, 160, 128)),
}
GRASS: tuple[Colour, ...] = ((128, 186, 98), (152, 190, 104), (104, 170, 110), (176, 186, 104))
SAND: tuple[Colour, ...] = ((238, 214, 166), (228, 200, 150))
PAVEMENT: tuple[Colour, ...] = ((196, 192, 188), (182, 184, 190), (206, 196, 184))
WATER: tuple[Colour, ...] = ((86, 160, 196), (96, 174, 186), (74, 140, 190))
WALLS: tuple[Colour, ...] = (
    (238, 214, 190),
    (200, 220, 214),
    (214, 206, 226),
    (232, 226, 206),
    (190, 208, 226),
    (226, 188, 174),
)
FLOORS: tuple[Colour, ...] = ((190, 146, 104), (168, 124, 88), (206, 174, 136), (150, 136, 128))


def gradient(size: tuple[int, int], top: Colour, bottom: Colour) -> Image.Image:
    """From one colour at the top to another at the bottom."""
    strip = Image.new("RGB", (1, 33))
    strip.putdata([mixed(top, bottom, k / 32) for k in range(33)])
    return strip.resize((1, size[1]), Image.Resampling.BILINEAR).resize(size, Image.Resampling.NEAREST)


def outdoors(rng: Random, size: tuple[int, int], horizon: float, setting: str, light: str, shore: float) -> Image.Image:
    """A park, farm, street or shore. `horizon` and `shore` (where the water ends) in pixels from the top."""
    w, h = size[0] * TIMES, size[1] * TIMES
    line = round(horizon * TIMES)
    sky = SKIES[light]
    image = Image.new("RGB", (w, h))
    image.paste(gradient((w, line + 2), *sky), (0, 0))
    draw = ImageDraw.Draw(image)
    _sun_and_clouds(rng, draw, w, line, sky)
    ground = pick(rng, {"shore": SAND, "street": PAVEMENT}.get(setting, GRASS))
    if setting == "street":
        _skyline(rng, draw, w, line, sky[1])
    else:
        for k in range(rng.randrange(1, 4)):
            far = mixed(pick(rng, GRASS), sky[1], 0.66 - 0.17 * k)
            _hills(rng, draw, w, line, rng.uniform(0.05, 0.16) * h * (1 - 0.25 * k), far)
    image.paste(gradient((w, h - line), lighter(mixed(ground, sky[1], 0.35), 0.05), lighter(ground, -0.14)), (0, line))
    if setting == "shore":
        water = pick(rng, WATER)
        edge = round(shore * TIMES)
        image.paste(gradient((w, edge - line), mixed(water, sky[1], 0.4), water), (0, line))
        for _ in range(26):
            y = line + (edge - line) * rng.random()
            x, long = rng.uniform(0, w), rng.uniform(10, 60) * (0.3 + (y - line) / max(edge - line, 1))
            draw.line((x, y, x + long, y), fill=lighter(water, 0.4), width=2)
        waves = [(x, edge + 5 * math.sin(x / 46) + 3 * math.sin(x / 17)) for x in range(0, w + 24, 24)]
        draw.line(waves, fill=(250, 250, 246), width=7, joint="curve")
    elif setting == "street":
        top, low = line + (h - line) * rng.uniform(0.28, 0.4), line + (h - line) * rng.uniform(0.72, 0.85)
        draw.rectangle((0, top, w, low), fill=(112, 116, 126))
        draw.rectangle((0, top - 5, w, top), fill=(226, 224, 220))
        draw.rectangle((0, low, w, low + 7), fill=(226, 224, 220))
        for x in range(-rng.randrange(120), w, 150):
            draw.rectangle((x, (top + low) / 2 - 4, x + 80, (top + low) / 2 + 4), fill=(236, 222, 170))
    else:
        _path(rng, draw, w, h, line, ground)
    _tufts(rng, draw, w, h, line if setting != "shore" else round(shore * TIMES), ground)
    return image.reduce(TIMES)


def indoors(rng: Random, size: tuple[int, int], floor: float) -> Image.Image:
    """A room whose floor begins at `floor` pixels from the top."""
    w, h = size[0] * TIMES, size[1] * TIMES
    line = round(floor * TIMES)
    wall, boards = pick(rng, WALLS), pick(rng, FLOORS)
    image = Image.new("RGB", (w, h))
    image.paste(gradient((w, line), lighter(wall, 0.12), lighter(wall, -0.06)), (0, 0))
    draw = ImageDraw.Draw(image)
    kind = rng.random()
    if kind < 0.35:
        step = rng.randrange(60, 120)
        for x in range(-rng.randrange(step), w, step):
            draw.rectangle((x, 0, x + step // 3, line), fill=lighter(wall, 0.16))
    elif kind < 0.6:
        rail = round(line * rng.uniform(0.6, 0.72))
        image.paste(gradient((w, line - rail), lighter(wall, -0.12), lighter(wall, -0.2)), (0, rail))
        draw.rectangle((0, rail - 8, w, rail), fill=lighter(wall, 0.5))
    image.paste(gradient((w, h - line), lighter(boards, -0.12), lighter(boards, 0.1)), (0, line))
    centre, seam = w / 2, lighter(boards, -0.22)
    for k in range(-14, 15):
        draw.line((centre + k * w / 14, line, centre + k * w / 14 * 2.2, h), fill=seam, width=2)
    draw.rectangle((0, line - 14, w, line), fill=lighter(wall, 0.6))
    if rng.random() < 0.6:
        cx, cy = rng.uniform(0.25, 0.75) * w, line + (h - line) * rng.uniform(0.5, 0.7)
        rx, ry = w * rng.uniform(0.22, 0.36), (h - line) * rng.uniform(0.2, 0.34)
        rug = lighter(pick(rng, WALLS), -0.25)
        for part, share in ((1.0, 0.0), (0.86, 0.3), (0.76, 0.08)):
            draw.ellipse((cx - rx * part, cy - ry * part, cx + rx * part, cy + ry * part), fill=lighter(rug, share))
    return image.reduce(TIMES)


def _sun_and_clouds(rng: Random, draw: ImageDraw.ImageDraw, w: int, line: int, sky: tuple[Colour, Colour]) -> None:
    if rng.random() < 0.5:
        x, y, r = rng.uniform(0.1, 0.9) * w, rng.uniform(0.15, 0.6) * line, rng.uniform(26, 54)
        glow = mixed(sky[0], sky[1], y / line)
        for k, share in ((2.2, 0.18), (1.6, 0.4), (1, 0.9)):
            draw.ellipse((x - k * r, y - k * r, x + k * r, y + k * r), fill=mixed(glow, (255, 240, 196), share))
    for _ in range(rng.randrange(0, 4)):
        x, y, s = rng.uniform(0, w), rng.uniform(0.1, 0.7) * line, rng.uniform(22, 60)
        white = mixed((255, 255, 255), sky[1], 0.25)
        for dx, dy, r in ((-1.4, 0.1, 0.7), (-0.5, -0.35, 1), (0.6, -0.15, 0.85), (1.5, 0.15, 0.6)):
            draw.ellipse(
                (x + (dx - r) * s, y + (dy - r * 0.7) * s, x + (dx + r) * s, y + (dy + r * 0.7) * s), fill=white
            )
        draw.rounded_rectangle((x - 2 * s, y, x + 2 * s, y + 0.62 * s), 0.3 * s, fill=white)


def _hills(rng: Random, draw: ImageDraw.ImageDraw, w: int, line: int, tall: float, colour: Colour) -> None:
    a, b, c = rng.uniform(0, 9), rng.uniform(1.5, 4), rng.uniform(4, 8)
    ridge = [
        (x, line - tall * (0.5 + 0.33 * math.sin(a + b * x / w) + 0.14 * math.sin(a * 2 + c * x / w)))
        for x in range(0, w + 16, 16)
    ]
    draw.polygon([(0, line + 4), *ridge, (w, line + 4)], fill=colour)


def _skyline(rng: Random, draw: ImageDraw.ImageDraw, w: int, line: int, haze: Colour) -> None:
    x = 0.0
    while x < w:
        wide, tall = rng.uniform(60, 150), rng.uniform(0.15, 0.6) * line
        draw.rectangle((x, line - tall, x + wide, line + 2), fill=mixed((150, 158, 178), haze, rng.uniform(0.5, 0.72)))
        x += wide + rng.uniform(-8, 20)


def _path(rng: Random, draw: ImageDraw.ImageDraw, w: int, h: int, line: int, ground: Colour) -> None:
    if rng.random() < 0.45:
        top, low = rng.uniform(0.2, 0.8) * w, rng.uniform(-0.1, 0.8) * w
        sand = mixed(ground, (236, 214, 170), 0.7)
        draw.polygon([(top, line + 6), (top + 30, line + 6), (low + 0.5 * w, h), (low, h)], fill=sand)


def _tufts(rng: Random, draw: ImageDraw.ImageDraw, w: int, h: int, line: int, ground: Colour) -> None:
    for _ in range(36):
        y = line + (h - line) * (0.06 + 0.94 * rng.random())
        x, s = rng.uniform(0, w), 3 + 13 * (y - line) / (h - line)
        colour = lighter(ground, rng.choice((-0.2, -0.12, 0.16)))
        draw.ellipse((x - s * 1.3, y - s * 0.25, x + s * 1.3, y + s * 0.25), fill=colour)
