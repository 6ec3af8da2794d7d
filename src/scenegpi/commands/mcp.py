"""`scenegpi mcp`: pictures for language-model clients, over stdin and stdout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scenegpi.commands.terminal import quiet


@quiet()
def mcp(
    path: Annotated[Path, typer.Argument(help="A store, a data set, or a folder of photos.", show_default=False)],
    photos: Annotated[Path | None, typer.Option(help="Folder of the photos.", show_default=False)] = None,
    model: Annotated[str | None, typer.Option(help="A shipped model or a folder.", show_default=False)] = None,
) -> None:
    """Serve pictures to a language-model client (MCP): tools predict, describe, search and open_picture."""
    from scenegpi.errors import require
    from scenegpi.files import missing

    require("mcp", "mcp", "mcp", "duckdb", "pyarrow")
    if not path.exists():
        raise missing(path)
    from scenegpi.serve.library import Library
    from scenegpi.serve.mcp import Tools, create_server
    from scenegpi.serve.settings import Bounds

    bounds = Bounds()
    library = Library(path, photos, bounds.seconds)
    try:
        create_server(Tools(library, model, bounds)).run("stdio")
    finally:
        library.close()
