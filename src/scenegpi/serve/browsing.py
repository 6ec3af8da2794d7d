"""GET routes of the images: lists, photos, graphs, search.

Few searches run at a time, in separate threads so that saving never waits for them; they end if the client
disconnects.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from fastapi import APIRouter, HTTPException, Path, Query, Request, Response

from scenegpi.data.photo_files import photo_size
from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import to_dict
from scenegpi.serve import schemas
from scenegpi.serve.annotations import State
from scenegpi.serve.library import Library
from scenegpi.serve.predicting import drawn
from scenegpi.serve.problems import file_answer, problems
from scenegpi.store import Hit, Store
from scenegpi.store.sql import Among
from scenegpi.store.store import Stop
from scenegpi.store.tags import Tags
from scenegpi.viz.canvas import Canvas
from scenegpi.viz.palette import COLOURS, deal_colours

Limit = Annotated[int, Query(ge=1, le=200)]
Offset = Annotated[int, Query(ge=0, le=10**9)]
Image = Annotated[int, Path(ge=0, le=2**53)]
States = Literal["any", "none", "begun", "done", "reviewed", "rejected"]
Chosen = Annotated[States, Query(description="State of its annotation; none: not begun.")]
Order = Literal["added", "uncertain"]
Tag = Annotated[str, Query(max_length=100)]
MOST_DRAWN, PART, MOST_LISTED = 60, 30, 300
"""Most objects of a graph drawn whole, objects drawn of a larger one, names counted for the page."""

THREADS = 2
LISTENING = 0.25
"""Seconds between checks that the client is still connected."""
Found = TypeVar("Found")


class Browsing:
    """The routes over a library; `info` tells the page about the server, `states` the annotations by key."""

    def __init__(
        self, library: Library, info: schemas.LibraryInfo, searches: Searches, states: Mapping[str, State]
    ) -> None:
        self.library, self.states, self._info, self._searches = library, states, info, searches
        self._tags_of = lru_cache(1)(Tags)
        self.router, gone, busy = APIRouter(tags=["images"]), problems(404), problems(404, 429)
        picture = gone | file_answer("image/jpeg") | {304: {"description": "The browser has this version."}}
        self.router.get("/api/library")(self.about)
        self.router.get("/api/images")(self.images)
        self.router.get("/api/images/{image}", responses=gone)(self.image)
        self.router.get("/api/images/{image}/similar", responses=busy)(self.similar)
        self.router.put("/api/images/{image}/tags", responses=problems(404, 507))(self.tag)
        self.router.get("/api/facets")(self.facets)
        self.router.get("/api/images/{image}/photo", response_class=Response, responses=picture)(self.photo)
        self.router.get("/api/search", responses=busy)(self.search)
        self.router.get("/api/suggest")(self.suggest)

    def about(self) -> schemas.LibraryInfo:
        """The current state: photos may have been added, or have become searchable."""
        store = self.library.store
        known = {"total": len(self.library), "search": store is not None, "tags": self._tags is not None}
        return self._info.model_copy(update=known)

    @property
    def _tags(self) -> Tags | None:
        """The tags of the store; None for a data set, whose store is temporary."""
        store = self.library.store
        return None if store is None or self.library.kind == "data" else self._tags_of(store.folder)

    @property
    def _tagged(self) -> dict[str, tuple[str, ...]]:
        """Key -> tags."""
        return {} if self._tags is None else self._tags.all()

    def images(
        self, limit: Limit = 60, offset: Offset = 0, status: Chosen = "any", tag: Tag = "", order: Order = "added"
    ) -> schemas.Images:
        """Some images, in order, or the most uncertain first."""
        some, total = self.library.images(limit, offset, self._among(status, tag), order == "uncertain")
        return schemas.Images(images=some, total=total)

    def _among(self, status: str, tag: str) -> list[Among]:
        """The page's filters, as conditions on keys."""
        found = []
        if status == "none":
            found.append(Among(frozenset(self.states), False))
        elif status != "any":
            found.append(Among(frozenset(key for key, state in list(self.states.items()) if state.status == status)))
        if tag:
            found.append(Among(frozenset(key for key, tags in self._tagged.items() if tag in tags)))
        return found

    def facets(self) -> schemas.Facets:
        """The values to filter by, with their counts: labels and predicates, states, tags."""
        words = None if self.library.store is None else self.library.store.words
        return schemas.Facets(
            labels=[] if words is None else _most(words.labels),
            predicates=[] if words is None else _most(words.predicates),
            statuses=dict(Counter(state.status for state in list(self.states.values()))),
            tags=_most(Counter(tag for tags in self._tagged.values() for tag in tags)),
        )

    async def similar(self, request: Request, image: Image, limit: Limit = 24) -> schemas.Similar:
        """Images most similar to this one, by the labels and relations of its graph."""
        store = self._store()

        def find(stop: Stop) -> schemas.Similar:
            with store.snapshot():
                graph = self.library.graph(image)
                hits = [] if graph is None else store.similar(graph, limit + 1)
                found = self._hits(store, [hit for hit in hits if hit.score > 0])
            return schemas.Similar(hits=[hit for hit in found if hit.image != image][:limit])

        return await self._searches.run(find, request)

    def tag(self, image: Image, tags: schemas.TagList) -> schemas.TagList:
        """Replaces the tags of an image; they are kept in the store."""
        if self._tags is None:
            raise HTTPException(404, "tags need a store: start the server with one, or predict the photos")
        key = self.library.key(image)
        try:
            return schemas.TagList(tags=list(self._tags.set(key, tags.tags)))
        except DataError as error:
            raise HTTPException(507, error.message) from None

    def image(self, image: Image, drawing: bool = False) -> schemas.ImageGraph:
        """An image, and its graph once it is predicted."""
        (known, changed), key = self.library.stored(image), self.library.key(image)
        photo, graph = self.library.photo(image, known), None if changed else known
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
            file=key if known is None else known.file,
            photo=photo is not None,
            changed=changed,
            width=width,
            height=height,
            graph=None if graph is None else to_dict(graph),
            tags=list(self._tagged.get(key, ())),
        )
        if graph is not None and drawing:
            _draw(answer, graph)
        return answer

    def photo(self, image: Image, request: Request, size: Literal["thumb", "full"] = "full") -> Response:
        """The photo as a JPEG. Its ETag changes with the file: browsers download each version once."""
        try:
            path = self.library.photo(image)
            if path is None:
                raise HTTPException(404, f"image {image} has no photo")
            headers = {"cache-control": "private, no-cache", "etag": f'"{self.library.tag(path)}-{size}"'}
            if headers["etag"] in request.headers.get("if-none-match", ""):
                return Response(status_code=304, headers=headers)
            return Response(self.library.jpeg(path, size), media_type="image/jpeg", headers=headers)
        except DataError:
            raise HTTPException(404, f"no photo {image}") from None

    async def search(
        self,
        request: Request,
        q: Annotated[str, Query(max_length=1000)],
        limit: Limit = 40,
        offset: Offset = 0,
        least: Annotated[float, Query(ge=0, le=1, description="Minimum score of the best match.")] = 0,
        status: Chosen = "any",
        tag: Tag = "",
    ) -> schemas.SearchAnswer:
        """Images that match a query (docs/search.md). The search ends when the client disconnects."""
        store, among = self._store(), self._among(status, tag)

        def find(stop: Stop) -> schemas.SearchAnswer:
            with store.snapshot():
                answer = store.search(q, limit, offset, stop, least, among)
                hits = self._hits(store, answer.hits)
            return schemas.SearchAnswer(
                query=str(answer.query), hits=hits, total=answer.images, notes=list(answer.notes)
            )

        return await self._searches.run(find, request)

    def suggest(self, q: Annotated[str, Query(max_length=200)] = "") -> schemas.Suggestions:
        """Triplets and labels that complete the text."""
        store = self.library.store
        return schemas.Suggestions(suggestions=[] if store is None else store.words.suggestions(q))

    def _store(self) -> Store:
        if self.library.store is None:
            raise HTTPException(404, "nothing to search: start the server with a store or a data set")
        return self.library.store

    def _hits(self, store: Store, hits: Iterable[Hit]) -> list[schemas.HitInfo]:
        """For the page; without those whose photo is gone from the folder."""
        numbers = {hit: number for hit in hits if (number := self.library.number(hit)) is not None}
        graphs = store.graphs(hit.image for hit in numbers)
        photos = {hit.image: store.photo(hit) for hit in numbers}
        changed = store.changed(photos)
        return [
            self._hit(hit, number, graphs[hit.image], photos[hit.image] is not None, hit.image in changed)
            for hit, number in numbers.items()
        ]

    def _hit(self, hit: Hit, number: int, graph: SceneGraph, photo: bool, changed: bool) -> schemas.HitInfo:
        matches = []
        for match in () if changed else hit.matches:
            ends = match.objects
            boxes: list[Any] = [None if i is None else tuple(graph.boxes[i].tolist()) for i in ends]
            labels = [None if i is None else graph.names[i] for i in ends]
            matches.append(schemas.MatchInfo(objects=list(ends), labels=labels, boxes=boxes, score=match.score))
        return schemas.HitInfo(
            image=number,
            key=hit.key,
            file=hit.file,
            photo=photo,
            changed=changed,
            score=hit.score,
            count=hit.count,
            width=graph.width,
            height=graph.height,
            matches=matches,
        )


def _most(counts: Mapping[str, int]) -> list[list[str | int]]:
    """The most frequent names."""
    some = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:MOST_LISTED]
    return [[name, count] for name, count in some]


def _draw(answer: schemas.ImageGraph, graph: SceneGraph) -> None:
    """Colours of all objects, and the graph; if it is large, only the objects joined by the best relations."""
    canvas = Canvas.of(graph)
    many = len(graph) > MOST_DRAWN
    colours = [k % len(COLOURS) for k in range(len(graph))] if many else deal_colours(canvas.boxes)
    answer.colours = [COLOURS[k] for k in colours]
    shown: set[int] = set()
    for s, o, _ in graph.relations[np.argsort(-graph.triplet_scores(), kind="stable")].tolist() if many else ():
        if len(shown | {s, o}) > PART:
            break
        shown |= {s, o}
    if shown or not many:
        answer.drawing = drawn(graph, canvas, colours, shown if many else None)


class Searches:
    """At most `most` searches run or wait; the next is refused with 429."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._pool = ThreadPoolExecutor(THREADS, "search")
        self._running: set[Stop] = set()

    async def run(self, find: Callable[[Stop], Found], request: Request) -> Found:
        """The result of `find`, which is stopped if the client disconnects."""
        if len(self._running) >= self.most:
            raise HTTPException(429, "too many searches are waiting; try again", {"Retry-After": "2"})
        stop = Stop()
        self._running.add(stop)
        future = self._pool.submit(find, stop)
        future.add_done_callback(lambda _: self._running.discard(stop))
        asked = asyncio.wrap_future(future)
        try:
            while not (await asyncio.wait({asked}, timeout=LISTENING))[0]:
                if await request.is_disconnected():
                    future.cancel()
                    stop()
                    raise HTTPException(408, "the client has disconnected")
            return asked.result()
        except asyncio.CancelledError:
            stop()
            raise

    def close(self) -> None:
        """Ends all searches."""
        for stop in list(self._running):
            stop()
        self._pool.shutdown(cancel_futures=True)
