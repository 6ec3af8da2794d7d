"""GET routes of the images: lists, photos, graphs, search."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Path, Query, Request, Response

from scenegpi.data.photo_files import photo_size
from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import to_dict
from scenegpi.serve import schemas
from scenegpi.serve.answers import drawn
from scenegpi.serve.library import Library
from scenegpi.serve.problems import problems
from scenegpi.serve.searching import Searches
from scenegpi.serve.settings import Bounds
from scenegpi.store import Hit, Store
from scenegpi.store.store import Stop
from scenegpi.viz.canvas import Canvas
from scenegpi.viz.palette import COLOURS, deal_colours

Limit = Annotated[int, Query(ge=1, le=200)]
Offset = Annotated[int, Query(ge=0, le=10**9)]
Image = Annotated[int, Path(ge=0, le=2**53)]
MOST_DRAWN = 60


class Browsing:
    """The routes over a library; `info` is what the page is told about the server."""

    def __init__(self, library: Library, info: schemas.LibraryInfo, bounds: Bounds) -> None:
        self.library, self.info = library, info
        self._searches = Searches(bounds.searches)

    def close(self) -> None:
        """Ends what still runs."""
        self._searches.close()

    def router(self) -> APIRouter:
        """The routes."""
        router = APIRouter(tags=["images"])
        gone = problems(404)
        picture: dict[int | str, dict[str, Any]] = {
            200: {"description": "The photo.", "content": {"image/jpeg": {"schema": _BINARY}}},
            304: {"description": "As the browser has it."},
        }
        router.get("/api/library", response_model=schemas.LibraryInfo)(lambda: self.info)
        router.get("/api/images", response_model=schemas.Images)(self.images)
        router.get("/api/images/{image}", response_model=schemas.ImageGraph, responses=gone)(self.image)
        router.get("/api/images/{image}/photo", response_class=Response, responses=gone | picture)(self.photo)
        router.get("/api/search", response_model=schemas.SearchAnswer, responses=problems(404, 429))(self.search)
        router.get("/api/suggest", response_model=schemas.Suggestions)(self.suggest)
        return router

    def images(self, limit: Limit = 60, offset: Offset = 0) -> schemas.Images:
        """Some images, in order."""
        some = [
            schemas.ImageInfo(image=each.image, key=each.key, file=each.file, photo=each.photo)
            for each in self.library.images(limit, offset)
        ]
        return schemas.Images(images=some, total=len(self.library))

    def image(self, image: Image, drawing: bool = False) -> schemas.ImageGraph:
        """An image with its graph, if there is one."""
        try:
            graph, key = self.library.graph(image), self.library.key(image)
        except DataError:
            raise HTTPException(404, f"no image {image}") from None
        photo = self.library.photo(image)
        width, height = (None, None) if graph is None else (graph.width, graph.height)
        if photo is not None and (width is None or height is None):
            try:
                width, height = photo_size(photo)
            except DataError as error:
                raise HTTPException(404, error.message) from None
        place, before, after = self.library.around(image)
        answer = schemas.ImageGraph(
            place=place,
            before=before,
            after=after,
            image=image,
            key=key,
            file=key if graph is None else graph.file,
            photo=photo is not None,
            width=width,
            height=height,
            graph=None if graph is None else to_dict(graph),
        )
        if graph is not None and drawing and len(graph) <= MOST_DRAWN:
            _draw(answer, graph)
        return answer

    def photo(self, image: Image, request: Request, size: Literal["thumb", "full"] = "full") -> Response:
        """The photo as a JPEG. Its tag changes with the file: a browser asks each time, and gets it once."""
        try:
            tag = f'"{self.library.tag(image)}-{size}"'
            headers = {"cache-control": "private, no-cache", "etag": tag}
            if tag in request.headers.get("if-none-match", ""):
                return Response(status_code=304, headers=headers)
            data = self.library.jpeg(image, size)
        except DataError:
            raise HTTPException(404, f"no photo {image}") from None
        if data is None:
            raise HTTPException(404, f"image {image} has no photo here")
        return Response(data, media_type="image/jpeg", headers=headers)

    async def search(
        self, request: Request, q: Annotated[str, Query(max_length=1000)], limit: Limit = 40, offset: Offset = 0
    ) -> schemas.SearchAnswer:
        """Images that a query finds (docs/search.md). It ends when the client leaves."""
        store = self._store()

        def find(stop: Stop) -> schemas.SearchAnswer:
            with store.snapshot():
                answer = store.search(q, limit, offset, stop)
                graphs = store.graphs(hit.image for hit in answer.hits)
            return schemas.SearchAnswer(
                query=str(answer.query),
                hits=[_hit(store, hit, graphs[hit.image]) for hit in answer.hits],
                total=answer.images,
                notes=list(answer.notes),
            )

        return await self._searches.run(find, request)

    def suggest(self, q: Annotated[str, Query(max_length=200)] = "") -> schemas.Suggestions:
        """Triplets and labels that go on as the text does."""
        store = self.library.store
        return schemas.Suggestions(suggestions=[] if store is None else store.words.suggestions(q))

    def _store(self) -> Store:
        if self.library.store is None:
            raise HTTPException(404, "there is nothing to search: start the server with a store or a data set")
        return self.library.store


_BINARY = {"type": "string", "format": "binary"}


def _hit(store: Store, hit: Hit, graph: SceneGraph) -> schemas.HitInfo:
    matches = []
    for match in hit.matches:
        ends = match.objects
        boxes: list[Any] = [None if i is None else tuple(graph.boxes[i].tolist()) for i in ends]
        labels = [None if i is None else graph.names[i] for i in ends]
        matches.append(schemas.MatchInfo(objects=list(ends), labels=labels, boxes=boxes, score=match.score))
    return schemas.HitInfo(
        image=hit.image,
        key=hit.key,
        file=hit.file,
        photo=store.photo(hit) is not None,
        score=hit.score,
        count=hit.count,
        width=graph.width,
        height=graph.height,
        matches=matches,
    )


def _draw(answer: schemas.ImageGraph, graph: SceneGraph) -> None:
    canvas = Canvas.of(graph)
    colours = deal_colours(canvas.boxes)
    answer.drawing = drawn(graph, canvas, colours)
    answer.colours = [COLOURS[k] for k in colours]
