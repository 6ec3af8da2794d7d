"""`scenegpi serve`: the studio and the HTTP interface. `scenegpi mcp`: pictures for language-model clients."""

from __future__ import annotations

import os
import socket
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from scenegpi.commands.options import Device, File, Model, Photos, Text
from scenegpi.commands.terminal import quiet, say
from scenegpi.errors import DataError, naming, require
from scenegpi.files import missing, read_object, reason

NAMES = 'Labels and predicates to annotate with: JSON {"objects", "predicates"}.'
LABEL_STUDIO = "Also act as an ML backend of Label Studio (/setup and /predict)."


@quiet()
def serve(
    path: Annotated[File, Argument(help="A store, a data set, or a folder of photos.")] = None,
    photos: Photos = None,
    model: Model = None,
    detector: Annotated[Text, Option(help="Find boxes with this detector, as in predict.")] = None,
    annotations: Annotated[File, Option(help="Folder for annotations; by default out/annotations/NAME.")] = None,
    names: Annotated[File, Option(help=NAMES)] = None,
    host: Annotated[str, Option(help="Address to listen on; any other than loopback needs a token.")] = "127.0.0.1",
    port: Annotated[int, Option(help="Port to listen on; 0 for a free one.", min=0, max=65535)] = 8000,
    token: Annotated[Text, Option(help="Token that requests must carry; generated if one is needed.")] = None,
    public: Annotated[Text, Option(help="Public address of a reverse proxy, such as https://studio.example.")] = None,
    moved: Annotated[bool, Option("--moved", help="The annotated data has moved to PATH.")] = False,
    open_page: Annotated[bool, Option("--open/--no-open", help="Open the page in a browser.")] = True,
    device: Device = "cpu",
    label_studio: Annotated[bool, Option("--label-studio", help=LABEL_STUDIO)] = False,
) -> None:
    """Open the studio: try pictures, browse and search, annotate. Local; nothing leaves this machine."""
    require("serve", "serve", "fastapi", "uvicorn", "duckdb", "pyarrow")
    import uvicorn

    from scenegpi.prediction.finding import FinderSpec, check_finder
    from scenegpi.serve.app import Studio, create_app
    from scenegpi.serve.guard import server_config
    from scenegpi.serve.running import work_folder
    from scenegpi.serve.settings import Access
    from scenegpi.vocabulary import Vocabulary

    if path is not None and not path.exists():
        raise missing(path)
    check_finder(finder := FinderSpec.of(detector))
    listening = _listen(host, port)
    access = Access.of(host, listening.getsockname()[1], token, public)
    with naming(names or "", ValueError):
        vocabulary = Vocabulary.from_dict(read_object(names)) if names else None
    if annotations is None and path is not None:
        folder = Path("out/annotations") / (path.resolve().stem or "images")
        annotations = _writable(folder, "annotations", "; --annotations FOLDER chooses another")
    work = _writable(work_folder(path), "predicting folders from the page") if path is None or path.is_dir() else None
    studio = Studio(
        path, photos, annotations, model, vocabulary, access,
        device=device, finder=finder, label_studio=label_studio, moved=moved, work=work,
    )  # fmt: skip
    app = create_app(studio)
    say(f"studio: {access.url}  (Ctrl-C stops it)")
    if annotations is not None:
        say(f"annotations: {annotations}")
    if open_page:
        threading.Timer(0.8, webbrowser.open, [access.url]).start()
    uvicorn.Server(server_config(app)).run(sockets=[listening])


@quiet()
def mcp(
    path: Annotated[Path, Argument(help="A store, a data set, or a folder of photos.")],
    photos: Photos = None,
    model: Model = None,
) -> None:
    """Serve pictures to a language-model client (MCP): tools predict, describe, search and open_picture."""
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


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # Naming the protocol makes asyncio turn Nagle's algorithm off; otherwise answers wait 40 ms.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except (OSError, UnicodeError) as error:
        said = reason(error) if isinstance(error, OSError) else str(error)
        raise DataError("--host/--port", f"cannot listen on {host}:{port} ({said}); try --port 0") from None
    return listening


def _writable(folder: Path, what: str, more: str = "") -> Path | None:
    """A default folder for output; None, with a printed line, if it cannot be written to."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if os.access(there, os.W_OK | os.X_OK):
        return folder
    say(f"{what}: off, {there.resolve()} cannot be written{more}")
    return None
