"""`scenegpi describe`: a photo in words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scenegpi.commands.terminal import quiet


@quiet()
def describe(
    photo: Annotated[Path, typer.Argument(help="A photo.", show_default=False, readable=False)],
    style: Annotated[str, typer.Option(help="sentences, triples or json.")] = "sentences",
    limit: Annotated[int, typer.Option(help="Print at most this many characters.", min=100)] = 2000,
    model: Annotated[str | None, typer.Option(help="A shipped model or a folder.", show_default=False)] = None,
) -> None:
    """Say what is in a photo and where, the most informative relations first; for people and for language models."""
    import sys

    from scenegpi.prediction import predict

    graph = predict(photo, **({"model": model} if model else {}))
    sys.stdout.write(graph.to_text(style, limit) + "\n")  # type: ignore[arg-type]
