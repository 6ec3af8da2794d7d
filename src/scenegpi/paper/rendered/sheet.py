"""Pictures about rendered scenes: a few of them side by side, and the families of look-alikes.

`python -m scenegpi.paper.rendered.sheet docs/images` draws those of docs/lab/rendered.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from random import Random

from PIL import Image, ImageDraw, ImageFont

from scenegpi.files import whole_file
from scenegpi.paper.rendered.animals import flyer, four_legs
from scenegpi.paper.rendered.brush import Brush, Frame
from scenegpi.paper.rendered.drawing import FAMILIES, Drawing
from scenegpi.paper.rendered.large_things import green, pane, slab
from scenegpi.paper.rendered.people import person
from scenegpi.paper.rendered.scene import render_scene
from scenegpi.paper.rendered.small_things import case, dome, round_thing, tin

SHOWN = (2, 8, 3, 9, 16, 20, 25, 22, 28)
CELL, GAP = (420, 315), 8
PAPER, INK = (255, 255, 255), (50, 54, 62)
TALL: dict[str, Callable[[Random, str, bool], Drawing]] = {
    "round": lambda rng, label, shared: round_thing(rng, label, shared, 0.5),
    "dome": lambda rng, label, shared: dome(rng, label, shared, 1.2),
    "tin": lambda rng, label, shared: tin(rng, label, shared, 0.9),
    "case": lambda rng, label, shared: case(rng, label, shared, 1.1),
    "slab": slab,
    "four legs": four_legs,
    "flyer": flyer,
    "pane": lambda rng, label, shared: pane(rng, label, shared, 0.8, 0.9),
    "green": green,
    "people": lambda rng, label, shared: person(rng, label, shared, "stand"),
}


def scene_sheet(seed: int, indices: Sequence[int], columns: int = 3) -> Image.Image:
    """Some scenes of a seed, each cut to the same shape."""
    rows = -(-len(indices) // columns)
    sheet = Image.new("RGB", (columns * (CELL[0] + GAP) - GAP, rows * (CELL[1] + GAP) - GAP), PAPER)
    for k, index in enumerate(indices):
        image, _ = render_scene(seed, index)
        sheet.paste(_cut(image), ((k % columns) * (CELL[0] + GAP), k // columns * (CELL[1] + GAP)))
    return sheet


def _cut(image: Image.Image) -> Image.Image:
    """The middle of a picture, in the shape of a cell."""
    scale = max(CELL[0] / image.width, CELL[1] / image.height)
    w, h = CELL[0] / scale, CELL[1] / scale
    left, top = (image.width - w) / 2, (image.height - h) * 0.7
    return image.resize(CELL, Image.Resampling.LANCZOS, box=(left, top, left + w, top + h))


def family_sheet(seed: int = 0) -> Image.Image:
    """One row a family: each member in its own look, then in the look they share."""
    most = max(map(len, FAMILIES.values()))
    wide, high, left, top = 92, 122, 96, 34
    right = left + most * wide + 36
    sheet = Image.new("RGB", (right + most * wide, top + len(FAMILIES) * high), PAPER)
    draw = ImageDraw.Draw(sheet)
    small, large = ImageFont.load_default(13), ImageFont.load_default(17)
    for x, text in ((left, "each in its own look"), (right, "in the look they share")):
        draw.text((x + most * wide / 2, 6), text, INK, large, anchor="ma")
    for row, (family, labels) in enumerate(FAMILIES.items()):
        y = top + row * high
        draw.text((10, y + high / 2 - 12), family, INK, large, anchor="lm")
        for shared, start in ((False, left), (True, right)):
            for k, label in enumerate(labels):
                drawing = TALL[family](Random(f"{seed} {label} {shared}"), label, shared)
                sheet.paste(_portrait(drawing, wide - 12, high - 30), (start + k * wide + 6, y + 4))
                draw.text((start + k * wide + wide / 2, y + high - 22), label, INK, small, anchor="ma")
    return sheet


def _portrait(drawing: Drawing, width: int, height: int) -> Image.Image:
    """A thing by itself, as large as fits."""
    e = drawing.extent
    trial = Brush(Frame(-e.left * 100 + 4, e.top * 100 + 4, 100), e, (2000, 2000))
    drawing.paint(trial)
    alone = trial.finish()
    alone = alone.crop(alone.getbbox())
    alone.thumbnail((width, height), Image.Resampling.LANCZOS)
    paper = Image.new("RGB", (width, height), PAPER)
    paper.paste(alone, ((width - alone.width) // 2, height - alone.height), alone)
    return paper


def main() -> None:
    """Writes rendered.png and rendered-families.png into a folder."""
    folder = Path(sys.argv[1])
    for name, image in (("rendered.png", scene_sheet(0, SHOWN)), ("rendered-families.png", family_sheet())):
        memory = BytesIO()
        colours = image.quantize(256)
        image.quantize(palette=colours, dither=Image.Dither.FLOYDSTEINBERG).save(memory, "PNG", optimize=True)
        with whole_file(folder / name) as part:
            part.write_bytes(memory.getvalue())
        print(f"{folder / name}: written")


if __name__ == "__main__":
    main()
