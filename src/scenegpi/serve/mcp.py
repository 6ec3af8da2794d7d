"""A server for language-model clients (Model Context Protocol, over stdin and stdout): tools over a set of pictures.

Clients name pictures by number or by name, never by path: they can access only what the server was started with, within
the studio's limits.
"""

from __future__ import annotations

from functools import cached_property, wraps
from typing import Any

from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from scenegpi import __version__
from scenegpi.errors import DataError, SceneGPIError
from scenegpi.graph import SceneGraph
from scenegpi.graph_text import Style
from scenegpi.prediction import Predictor
from scenegpi.prediction.defaults import PHOTO
from scenegpi.serve.library import SIZES, Library, small_jpeg
from scenegpi.serve.settings import Bounds

MOST_HITS, MOST_TEXT = 50, 20_000
CHANGED = "the photo was replaced after it was indexed; describe it anew"
ABOUT = """Scene graphs of a collection of pictures: objects with boxes, and relations such as 'man riding horse'.
Use `search` with short lines ('man on horse', 'red car', 'at least 3 person and no dog') to find pictures, `describe`
to read one in words, `predict` for its graph as JSON, `open_picture` to look at it. Pictures are named by number or by
file name."""


class Tools:
    """The tools; `model` must use photos, and is the shipped one by default."""

    def __init__(self, library: Library, model: str | None = None, bounds: Bounds | None = None) -> None:
        self.library, self.model, self.bounds = library, model or PHOTO, bounds or Bounds()

    @cached_property
    def _predictor(self) -> Predictor:
        return Predictor(self.model)

    def predict(self, picture: str, limit: int = 4000) -> str:
        """The scene graph of a picture as short JSON: objects (id, label, box, where) and relations [subject,
        predicate, object]. `picture` is a number or a file name of this collection."""
        return self._graph(picture, photo=True).to_text("json", _bounded(limit))

    def describe(self, picture: str, style: Style = "sentences", limit: int = 2000) -> str:
        """A picture in words: things, places and relations. `style` is sentences, triples or json."""
        return self._graph(picture).to_text(style, _bounded(limit))

    def search(self, query: str, limit: int = 10) -> dict[str, Any]:
        """Pictures that match a query line, best first: 'man riding horse', 'red car', '2 person and no dog'."""
        store = self.library.store
        if store is None:
            raise DataError(self.library.name, "is not indexed: start the server with a store (`scenegpi index`)")
        answer = store.search(query, min(max(limit, 1), MOST_HITS))
        graphs = store.graphs([hit.image for hit in answer.hits])
        changed = store.changed({hit.image: store.photo(hit) for hit in answer.hits})
        found = [
            {"picture": hit.image, "name": hit.key, "score": round(hit.score, 4)}
            | {"text": CHANGED if hit.image in changed else graphs[hit.image].to_text(limit=300)}
            for hit in answer.hits
        ]
        return {"understood": str(answer.query), "pictures": answer.images, "found": found, "notes": list(answer.notes)}

    def open_picture(self, picture: str) -> Image:
        """The picture itself, as a JPEG of at most 1,600 pixels."""
        photo = self.library.photo(self._number(picture))
        if photo is None:
            raise DataError(picture, "the photo is not there")
        self.bounds.check_photo(photo)
        return Image(data=small_jpeg(photo, SIZES["full"]), format="jpeg")

    def _number(self, picture: str) -> int:
        text, listed = str(picture).strip(), self.library.called()
        named = [number for number, *names in listed if text in names]
        named += [number for number, *_ in listed if text == str(number)]
        if not named:
            raise DataError(f"{text!r:.60}", f"no such picture (of {len(listed):,})")
        return named[0]

    def _graph(self, picture: str, photo: bool = False) -> SceneGraph:
        """The stored graph of a picture; with `photo`, or if none is stored, what the model predicts from its photo."""
        number = self._number(picture)
        known, path = self.library.graph(number), self.library.photo(number)
        if path is None or (known is not None and not photo):
            if known is None:
                raise DataError(picture, "the photo is not there")
            return known
        self.bounds.check_photo(path)
        return self._predictor(path)


def _bounded(limit: int) -> int:
    return min(max(limit, 100), MOST_TEXT)


def create_server(tools: Tools) -> MCPServer:
    """The server; a tool's error is one line without local paths."""
    server: MCPServer = MCPServer("scenegpi", instructions=ABOUT, version=__version__, log_level="WARNING")
    for name in ("predict", "describe", "search", "open_picture"):
        server.tool(name)(_one_line(getattr(tools, name)))
    return server


def _one_line(tool: Any) -> Any:
    @wraps(tool)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return tool(*args, **named)
        except SceneGPIError as error:
            raise ToolError(error.message if isinstance(error, DataError) else str(error)) from None

    return call
