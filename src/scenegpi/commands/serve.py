"""`scenegpi serve`: the studio and the HTTP interface on this machine."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

import typer

from scenegpi.commands.quiet import quiet
from scenegpi.commands.terminal import say


@quiet()
def serve(
    path: Annotated[
        Path | None, typer.Argument(help="A store, a data set, or a folder of photos.", show_default=False)
    ] = None,
    photos: Annotated[Path | None, typer.Option(help="Folder of the photos.", show_default=False)] = None,
    model: Annotated[str | None, typer.Option(help="A shipped model or a folder.", show_default=False)] = None,
    annotations: Annotated[
        Path | None, typer.Option(help="Folder for annotations; by default out/annotations/NAME.", show_default=False)
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            help='Labels and predicates to annotate with: JSON {"objects", "predicates"}.', show_default=False
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; any but loopback needs a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for a free one.", min=0, max=65535)] = 8000,
    token: Annotated[
        str | None, typer.Option(help="Token that requests must carry; made where one is needed.", show_default=False)
    ] = None,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    device: Annotated[str, typer.Option(help="Where the model runs: cpu, cuda, ...")] = "cpu",
) -> None:
    """Open the studio: try pictures, browse and search, annotate. Local; nothing leaves this machine."""
    from importlib.util import find_spec

    from scenegpi.errors import DataError

    missing = next((name for name in ("fastapi", "uvicorn", "duckdb", "pyarrow") if find_spec(name) is None), None)
    if missing is not None:
        raise DataError("serve", f"needs {missing}: pip install fastapi uvicorn duckdb pyarrow")
    import uvicorn

    from scenegpi.files import read_object
    from scenegpi.serve.app import Studio, create_app
    from scenegpi.serve.settings import Access
    from scenegpi.vocabulary import Vocabulary

    if path is not None and not path.exists():
        raise DataError(path, "no such file or folder")
    listening = _listen(host, port)
    access = Access.of(host, listening.getsockname()[1], token)
    try:
        vocabulary = Vocabulary.from_dict(read_object(names)) if names else None
    except ValueError as error:
        raise DataError(names or "", str(error)) from None
    if annotations is None and path is not None:
        annotations = Path("out/annotations") / (path.resolve().stem or "images")
    studio = Studio(path, photos, annotations, model, vocabulary, access, device=device)
    app = create_app(studio)
    say(f"studio: {access.url}  (Ctrl-C stops it)")
    if annotations is not None:
        say(f"annotations: {annotations}")
    if open_page:
        _open_browser(access.url)
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, timeout_keep_alive=15)
    uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    from scenegpi.errors import DataError
    from scenegpi.files import reason

    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except (OSError, UnicodeError) as error:
        said = reason(error) if isinstance(error, OSError) else str(error)
        raise DataError("--host/--port", f"{host}:{port} cannot be listened on ({said}); try --port 0") from None
    return listening


def _open_browser(url: str) -> None:
    import threading
    import webbrowser

    threading.Timer(0.8, lambda: webbrowser.open(url)).start()
