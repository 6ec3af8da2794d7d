"""Pictures about rendered scenes: a few of them side by side, and the families of look-alikes.

`python tools/rendered_pictures.py docs/images` draws those of docs/lab/rendered.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

from PIL import Image, ImageDraw, ImageFont, ImageOps

from scenegpi.files import whole_file
from scenegpi.paper.rendered.brush import Brush, Drawing, Frame
from scenegpi.paper.rendered.scene import render_scene
from scenegpi.paper.rendered.things import FAMILIES

CELL, GAP = (420, 315), 8
PAPER, INK = (255, 255, 255), (50, 54, 62)


def scene_sheet(seed: int, indices: Sequence[int], columns: int = 3) -> Image.Image:
    """Some scenes of a seed, each cut to the same shape."""
    rows = -(-len(indices) // columns)
    sheet = Image.new("RGB", (columns * (CELL[0] + GAP) - GAP, rows * (CELL[1] + GAP) - GAP), PAPER)
    for k, index in enumerate(indices):
        image = ImageOps.fit(render_scene(seed, index)[0], CELL, Image.Resampling.LANCZOS, centering=(0.5, 0.7))
        sheet.paste(image, ((k % columns) * (CELL[0] + GAP), k // columns * (CELL[1] + GAP)))
    return sheet


def family_sheet(seed: int = 0) -> Image.Image:
    """One row per family: each member in its own look, then in the look they share."""
    most = max(len(labels) for _, labels in FAMILIES.values())
    wide, high, left, top = 92, 122, 96, 34
    right = left + most * wide + 36
    sheet = Image.new("RGB", (right + most * wide, top + len(FAMILIES) * high), PAPER)
    draw = ImageDraw.Draw(sheet)
    small, large = ImageFont.load_default(13), ImageFont.load_default(17)
    for x, text in ((left, "each in its own look"), (right, "in the look they share")):
        draw.text((x + most * wide / 2, 6), text, INK, large, anchor="ma")
    for row, (family, (function, labels)) in enumerate(FAMILIES.items()):
        y = top + row * high
        draw.text((10, y + high / 2 - 12), family, INK, large, anchor="lm")
        for shared, start in ((False, left), (True, right)):
            for k, label in enumerate(labels):
                alone = portrait(function(Random(f"{seed} {label} {shared}"), label, shared))
                alone.thumbnail((wide - 12, high - 30), Image.Resampling.LANCZOS)
                x = start + k * wide + wide // 2
                sheet.paste(alone, (x - alone.width // 2, y + high - 26 - alone.height), alone)
                draw.text((x, y + high - 22), label, INK, small, anchor="ma")
    return sheet


def portrait(drawing: Drawing) -> Image.Image:
    """A thing by itself, 240 pixels high with what surrounds it, cut at its edges."""
    extent = drawing.extent
    scale = 240 / (extent.top - extent.bottom)
    brush = Brush(Frame(-extent.left * scale + 2, extent.top * scale + 2, scale), extent, (1500, 1500))
    drawing.paint(brush)
    alone = brush.finish()
    return alone.crop(alone.getbbox())


def main() -> None:
    """Writes rendered.png and rendered-families.png into a folder."""
    folder = Path(sys.argv[1])
    for name, image in (("rendered.png", scene_sheet(0, range(9))), ("rendered-families.png", family_sheet())):
        colours = image.quantize(256)
        with whole_file(folder / name) as part:
            image.quantize(palette=colours, dither=Image.Dither.FLOYDSTEINBERG).save(part, "PNG", optimize=True)
        print(f"{folder / name}: written")


if __name__ == "__main__":
    main()
