"""`scenegpi describe`: a photo in words."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from scenegpi.commands.options import Model
from scenegpi.commands.terminal import quiet

Style = Literal["sentences", "triples", "json"]


@quiet()
def describe(
    photo: Annotated[Path, Argument(help="A photo.", readable=False)],
    style: Annotated[Style, Option(help="Sentences for people, triples or JSON for programs.")] = "sentences",
    limit: Annotated[int, Option(help="Print at most this many characters.", min=100)] = 2000,
    model: Model = None,
) -> None:
    """Say what is in a photo and where, the most informative relations first; for people and for language models."""
    from scenegpi.prediction import predict

    graph = predict(photo, **({"model": model} if model else {}))
    sys.stdout.write(graph.to_text(style, limit) + "\n")
