"""`scenegpi data render`: draws scenes with exact boxes, labels and relations."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from scenegpi.commands.terminal import say
from scenegpi.errors import counted

if TYPE_CHECKING:
    from scenegpi.paper.rendered.folder import Made


def render(
    out: Annotated[Path, Option(help="The folder to write; must not exist, or be empty.")],
    scenes: Annotated[int, Option(help="Number of scenes.", min=1)] = 1000,
    seed: Annotated[int, Option(help="Random seed.", min=0)] = 0,
    lookalike: Annotated[float, Option(help="Share of objects drawn to look like others of their family.")] = 0.85,
    damage: Annotated[float, Option(help="Strength of blur, noise and lighting changes, from 0 to 1.")] = 0.3,
    validation: Annotated[float, Option(help="Share of the scenes used as val.")] = 0.1,
    test: Annotated[float, Option(help="Share of the scenes used as test.")] = 0.2,
    jobs: Annotated[int, Option(help="Worker processes; 0 for one per core.", min=0)] = 0,
) -> None:
    """Draw scenes of people, animals and things: JPEGs with boxes, labels and relations in Visual Genome's layout."""
    from os import cpu_count

    from scenegpi.errors import DataError
    from scenegpi.paper.rendered import SceneOptions, render_folder

    try:
        options = SceneOptions(lookalike, damage)
    except ValueError as error:
        raise DataError(out, str(error)) from None

    def counted_scenes(made: Iterable[Made]) -> Iterable[Made]:
        from scenegpi.progress import watched

        return watched(made, "drawing", scenes)

    graphs = render_folder(out, scenes, seed, options, validation, test, jobs or cpu_count() or 1, counted_scenes)
    boxes, relations = (sum(map(len, part)) for part in (graphs, [graph.relations for graph in graphs]))
    parts = ((len(graphs), "scene"), (boxes, "box"), (relations, "relation"))
    say(f"{out}: wrote {', '.join(counted(*part) for part in parts)} (seed {seed})")
    say(f"{out / 'images'}: the images; show one with: scenegpi data show {out} --out scene.png")
