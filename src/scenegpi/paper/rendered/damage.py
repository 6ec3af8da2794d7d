"""What a camera does to a picture: light, blur, grain."""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageFilter

LIGHTS = (  # factors of red, green, blue
    (1.0, 1.0, 1.0),
    (1.05, 0.98, 0.86),
    (0.9, 0.97, 1.05),
    (0.88, 0.86, 0.98),
)
NOISE_SIDE = 768


def damage(image: Image.Image, rng: Random, strength: float) -> Image.Image:
    """The picture as a camera might have taken it; `strength` 0 leaves it as it is."""
    if strength <= 0:
        return image
    factors = LIGHTS[rng.choices(range(len(LIGHTS)), (5, 2, 2, 1))[0]]
    contrast = rng.uniform(0.88, 1.08)
    table = [min(max(round((v - 128) * contrast * f + 128 * f), 0), 255) for f in factors for v in range(256)]
    image = image.point(table)
    if rng.random() < 0.5:
        dark = _vignette().resize(image.size, Image.Resampling.BILINEAR)
        image = ImageChops.multiply(image, Image.merge("RGB", (dark, dark, dark)))
    if rng.random() < strength:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.5, 1.3)))
    grain = rng.choice((0, 2, 4, 8)) * min(strength * 2.5, 1)
    if grain:
        x, y = rng.randrange(NOISE_SIDE - 640 + 1), rng.randrange(NOISE_SIDE - 640 + 1)
        noise = _noise()[y : y + image.height, x : x + image.width, None]
        pixels = np.asarray(image).astype(np.int16) + (noise * grain).astype(np.int16)
        image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    return image


@cache
def _noise() -> NDArray[np.float32]:
    """(768, 768) sums of four uniform numbers: near enough to normal, and the same on every machine."""
    return (np.random.default_rng(0).random((NOISE_SIDE, NOISE_SIDE, 4)).sum(axis=2) - 2).astype(np.float32) * 1.7


@cache
def _vignette() -> Image.Image:
    y, x = np.mgrid[-1:1:24j, -1:1:24j]
    return Image.fromarray((255 * (1 - 0.22 * np.clip(np.hypot(x, y) - 0.55, 0, 1))).astype(np.uint8))
