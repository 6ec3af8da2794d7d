"""`scenegpi demo`: what the tool does, on what ships in the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(out: Annotated[Path, typer.Option(help="Where pictures and files go.")] = Path("out/demo")) -> None:
    """Reads the shipped sample scenes, draws them, converts them, and checks what was written."""
    from rich.console import Console

    from scenegpi.data import convert, open_dataset, sample_path, statistics, validate
    from scenegpi.viz.picture import draw
    from scenegpi.viz.terminal import render

    console = Console()
    dataset = open_dataset(sample_path())
    figures = statistics(dataset)
    console.rule("the sample scenes")
    console.print(f"{figures.images} images, {figures.boxes} boxes, {figures.relations} relations\n")
    console.print(render(dataset[0], columns=min(max(console.width - 1, 16), 100)))
    console.rule("pictures and files")
    for graph in dataset:
        print(f"{draw(graph, out / f'scene-{graph.image_id}.png')}: the scene as boxes and as a graph")
    for name in ("scenes.jsonl", "scenes.json", "visual-genome"):
        count = convert(dataset, out / name, overwrite=True)
        same = all(a == b for a, b in zip(dataset, open_dataset(out / name), strict=True))
        errors = validate(out / name).errors
        print(
            f"{out / name}: {count} scenes written, read back {'the same' if same else 'DIFFERENT'}, {errors} defects"
        )
    console.rule("next")
    print("scenegpi data show            the sample in the terminal\nscenegpi data stats DATA      your own data set")
