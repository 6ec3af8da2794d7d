"""`scenegpi data render`: draws scenes with exact boxes, labels and relations."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scenegpi.commands.terminal import say

if TYPE_CHECKING:
    from scenegpi.rendered.folder import Made


def render(
    out: Annotated[Path, typer.Option(help="The folder to write; must not exist, or be empty.", show_default=False)],
    scenes: Annotated[int, typer.Option(help="Number of scenes.", min=1)] = 1000,
    seed: Annotated[int, typer.Option(help="Another seed gives other scenes.", min=0)] = 0,
    lookalike: Annotated[float, typer.Option(help="Share of things drawn in their family's shared look.")] = 0.85,
    damage: Annotated[float, typer.Option(help="Blur, noise and light, from 0 to 1.")] = 0.3,
    validation: Annotated[float, typer.Option(help="Share of the scenes that is val.")] = 0.1,
    test: Annotated[float, typer.Option(help="Share of the scenes that is test.")] = 0.2,
    jobs: Annotated[int, typer.Option(help="Processes; 0 takes one per core.", min=0)] = 0,
) -> None:
    """Draw scenes of people, animals and things: JPEGs with boxes, labels and relations in Visual Genome's layout."""
    from os import cpu_count

    from scenegpi.errors import DataError
    from scenegpi.rendered import SceneOptions, render_folder

    try:
        options = SceneOptions(lookalike, damage)
    except ValueError as error:
        raise DataError(out, str(error)) from None

    def watched(made: Iterable[Made]) -> Iterable[Made]:
        from scenegpi.progress import progress

        with progress("drawing", scenes) as step:
            for each in made:
                yield each
                step(1)

    graphs = render_folder(out, scenes, seed, options, validation, test, jobs or cpu_count() or 1, watched)
    boxes, relations = (sum(map(len, part)) for part in (graphs, [graph.relations for graph in graphs]))
    say(f"{out}: {len(graphs):,} scenes written, {boxes:,} boxes, {relations:,} relations (seed {seed})")
    say(f"{out / 'images'}: their pictures; look at one with: scenegpi data show {out} --out scene.png")
