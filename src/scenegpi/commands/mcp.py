"""`scenegpi mcp`: pictures for language-model clients, over stdin and stdout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from scenegpi.commands.options import Model, Photos
from scenegpi.commands.terminal import quiet


@quiet()
def mcp(
    path: Annotated[Path, Argument(help="A store, a data set, or a folder of photos.")],
    photos: Photos = None,
    model: Model = None,
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
