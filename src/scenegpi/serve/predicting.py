"""POST /api/predict, /api/attention, /api/draw and GET /api/models: requests to the shared `Predictor`."""

from __future__ import annotations

import asyncio
import base64
import binascii
import tempfile
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import APIRouter, HTTPException, Response

from scenegpi.data.detector_results import graph_of
from scenegpi.data.export import EXPORTS
from scenegpi.errors import DataError, GraphError
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import to_dict
from scenegpi.models.shipped import model_vocabulary, shipped_models, vision_settings
from scenegpi.prediction import Item, Prediction, PredictOptions, Predictor, default_model
from scenegpi.prediction.defaults import PHOTO
from scenegpi.serve import schemas
from scenegpi.serve.batching import FullError, Predictions
from scenegpi.serve.library import Library
from scenegpi.serve.problems import file_answer, problems
from scenegpi.serve.settings import Bounds
from scenegpi.viz.canvas import Canvas
from scenegpi.viz.palette import COLOURS, deal_colours
from scenegpi.viz.report.drawing import graph_drawing

UPLOAD = "photo"
KINDS = {"png": "image/png", "svg": "image/svg+xml", "graphml": "application/xml", "json": "application/json"}
Request = schemas.PredictRequest


class Predicting:
    """The routes; `model` is the default for requests; None chooses by the input."""

    def __init__(self, predictions: Predictions, library: Library, bounds: Bounds, model: str | None = None) -> None:
        self.predictions, self.library, self.bounds, self.model = predictions, library, bounds, model
        self.router, refused = APIRouter(tags=["predict"]), problems(404, 429, 503)
        self.router.post("/api/predict", responses=refused)(self.predict)
        self.router.post("/api/attention", responses=refused)(self.attention)
        files = refused | file_answer(*KINDS.values())
        self.router.post("/api/draw", response_class=Response, responses=files)(self.draw)
        self.router.get("/api/models")(self.models)

    async def predict(self, request: Request) -> schemas.PredictAnswer:
        """The scene graph of a photo, of boxes, or of both."""
        async with self._asked(request) as (request, item, model, why):
            return predict_answer(request, await self._graph(model, item), model, why)

    async def found(self, photo: Path) -> SceneGraph:
        """The graph of a photo on this machine; 422 if it can't be read."""
        try:
            self.bounds.check_photo(photo)
        except DataError as error:
            raise HTTPException(422, f"{photo.name}: {error.message}") from None
        graph = (await self._graph(self.model or PHOTO, Item(photo, None, photo.name))).graph
        assert graph is not None
        return graph

    async def attention(self, request: Request) -> schemas.AttentionAnswer:
        """The attention of the model's objects, for the same request."""
        from scenegpi.viz.attention import attention

        def run(predictor: Predictor, item: Item) -> Any:
            graph, task = predictor.prepare(item)
            return attention(predictor, graph, options=PredictOptions.scoring(task))

        async with self._asked(request) as (request, item, model, _):
            try:
                found = await self._wait(model, item, run)
            except GraphError as error:
                raise HTTPException(422, _without_path(str(error), item.photo)) from None
        return schemas.AttentionAnswer(neighbours=found.neighbours.tolist(), nodes=found.nodes.tolist())

    def draw(self, request: schemas.DrawRequest) -> Response:
        """A graph as a picture with its photo, as GraphML, or as JSON."""
        graph = read_graph(request.graph, self.bounds.boxes)
        if request.format == "json":
            return Response(graph.to_json() + "\n", media_type=KINDS["json"])
        if request.format == "graphml":
            return Response(EXPORTS["graphml"].text(graph), media_type=KINDS["graphml"])
        from scenegpi.viz.picture import picture

        with self._photo(request.photo, request.image) as photo:
            sheet = picture(graph, photo)
        data = sheet.svg() if request.format == "svg" else sheet.png()
        return Response(data, media_type=KINDS[request.format])

    def models(self) -> schemas.Models:
        """The models that requests may name."""
        found = []
        for name in dict.fromkeys([*([self.model] if self.model else []), *shipped_models()]):
            words, photos = model_vocabulary(name), bool(vision_settings(name))
            info = schemas.ModelInfo(name=name, photos=photos, objects=words.objects, predicates=words.predicates)
            found.append(info)
        return schemas.Models(models=found)

    @asynccontextmanager
    async def _asked(self, request: Request) -> AsyncIterator[tuple[Request, Item, str, str]]:
        """The request with a name for each box, the item to predict, the model, and the reason for that model."""
        with self._photo(request.photo, request.image) as photo:
            request = await self._named(request, photo)
            item = self._item(request, photo)
            yield request, item, *self._model(request, item)

    async def _graph(self, model: str, item: Item) -> Prediction:
        found: Prediction = await self._wait(model, item)
        if found.graph is None:
            raise HTTPException(422, _without_path(found.problem, item.photo))
        return found

    async def _named(self, request: Request, photo: Path | None) -> Request:
        """The request with a name for each box: if only some have names, the others are found in the photo first."""
        labels = request.labels
        if not labels or not request.boxes or None not in labels:
            return request
        if len(labels) != len(request.boxes):
            raise HTTPException(422, f"labels: {len(labels)} for {len(request.boxes)} boxes")
        if photo is None:
            raise HTTPException(422, "labels: boxes without a name need a photo")
        bare = request.model_copy(update={"labels": None, "scores": None})
        if all(label is None for label in labels):
            return bare
        item = self._item(bare, photo)
        named = request.model or self.model
        if named is not None and named in shipped_models() and not vision_settings(named):
            bare = bare.model_copy(update={"model": PHOTO})  # a model of boxes and labels can't name them
        found = await self._graph(self._model(bare, item)[0], item)
        assert found.graph is not None
        names = [name or own for name, own in zip(labels, found.graph.names, strict=True)]
        return request.model_copy(update={"labels": names})

    async def _wait(self, model: str, item: Item, own: Callable[[Predictor, Item], Any] | None = None) -> Any:
        try:
            future = self.predictions.submit(model, item, own)
        except FullError:
            raise HTTPException(429, "too many requests are waiting; try again", {"Retry-After": "1"}) from None
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.bounds.seconds)
        except (TimeoutError, CancelledError, asyncio.CancelledError):
            raise HTTPException(503, f"not answered within {self.bounds.seconds:g} s", {"Retry-After": "5"}) from None

    @contextmanager
    def _photo(self, data: str | None, image: int | None) -> Iterator[Path | None]:
        """A temporary file with the photo of a request; or the photo of an image of the library."""
        if data is None:
            try:
                known = None if image is None else self.library.photo(image)
            except DataError as error:
                raise HTTPException(422, f"image: {error.message}") from None
            yield known
            return
        if image is not None:
            raise HTTPException(422, "photo: give either a photo or the number of an image")
        try:
            content = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise HTTPException(422, "photo: not base64") from None
        with tempfile.TemporaryDirectory(prefix="scenegpi-") as folder:
            path = Path(folder) / UPLOAD
            path.write_bytes(content)
            try:
                self.bounds.check_photo(path)
            except DataError as error:
                raise HTTPException(422, f"photo: {error.message}") from None
            yield path

    def _item(self, request: Request, photo: Path | None) -> Item:
        chosen = request.model_dump(include={"informative", "top", "min_relation"})
        options = PredictOptions(**chosen, distributions=True)
        if request.boxes is None:
            if request.labels or request.scores:
                raise HTTPException(422, "boxes: labels and scores need boxes")
            if photo is None:
                raise HTTPException(422, "photo: give a photo, boxes, or both")
            return Item(photo, None, UPLOAD, options)
        if not request.boxes:
            raise HTTPException(422, "boxes: empty; leave the field out to have boxes found")
        labels = None if request.labels is None else [str(label) for label in request.labels]
        corners = np.sort(np.array(request.boxes, dtype=np.float64).reshape(-1, 2, 2), axis=1).reshape(-1, 4)
        given = graph_of(corners, None, labels=labels, width=request.width, height=request.height)
        if request.scores is not None:
            if labels is None:
                raise HTTPException(422, "scores: need labels")
            given = given.replace(scores=np.array(request.scores))
        return Item(photo, given, UPLOAD, options)

    def _model(self, request: Request, item: Item) -> tuple[str, str]:
        named = request.model or self.model
        if named is not None:
            if named not in shipped_models() and named != self.model:
                raise HTTPException(422, f"model: no model {named!r:.60}; see /api/models")
            return named, ""
        given = item.graph
        labels = None if given is None else given.vocabulary
        return default_model(item.photo is not None, labels, given is not None and given.scores is not None)


def read_graph(data: dict[str, Any], most: int) -> SceneGraph:
    """The graph of a request; 422 if it is invalid."""
    try:
        graph = SceneGraph.from_dict(data)
    except (GraphError, ValueError, TypeError, OverflowError) as error:
        raise HTTPException(422, f"graph: {error}") from None
    if len(graph) > most:
        raise HTTPException(422, f"graph: {len(graph)} boxes, at most {most}")
    if len(graph.relations) > 20 * most:
        raise HTTPException(422, f"graph: {len(graph.relations)} relations, at most {20 * most}")
    return graph


def _without_path(problem: str, photo: Path | None) -> str:
    """The problem without the server's paths."""
    return problem.replace(str(photo), UPLOAD) if photo is not None else problem


def predict_answer(request: schemas.PredictRequest, found: Prediction, model: str, why: str) -> schemas.PredictAnswer:
    """The response of /api/predict; `why` says how the model was chosen."""
    graph = found.graph
    assert graph is not None
    shown = graph.with_fields(label_dist=None, pairs=None, pair_dist=None)  # distributions are large
    notes = [f"{count} left out: {reason}" for reason, count in found.left_out.items()]
    canvas = Canvas.of(graph)
    colours = deal_colours(canvas.boxes)
    return schemas.PredictAnswer(
        graph=to_dict(shown),
        kept=found.kept.tolist(),
        model=model,
        why=why,
        photo_read=found.photo_read,
        notes=notes + ([found.why_unread] if found.why_unread else []),
        pairs=pairs_of(graph, request.alternatives) if request.alternatives else [],
        drawing=drawn(shown, canvas, colours) if request.drawing else None,
        colours=[COLOURS[k] for k in colours],
    )


def drawn(graph: SceneGraph, canvas: Canvas, colours: list[int], among: Collection[int] | None = None) -> str:
    """The graph as in the report, with all relations or those `among` some objects; triplet k is relation k."""
    links = {
        k: (s, o, graph.vocabulary.predicates[p])
        for k, (s, o, p) in enumerate(graph.relations.tolist())
        if among is None or {s, o} <= set(among)
    }
    return str(graph_drawing(graph, canvas, links, colours)) if len(graph) else ""


def pairs_of(graph: SceneGraph, count: int) -> list[schemas.Pair]:
    """P(related) of every ordered pair, and its likeliest `count` predicates."""
    if graph.pairs is None or graph.pair_dist is None:
        return []
    names, out = graph.vocabulary.predicates, []
    best = np.argsort(-graph.pair_dist[:, 1:], axis=1, kind="stable")[:, :count]
    for (s, o), row, order in zip(graph.pairs.tolist(), graph.pair_dist.tolist(), best.tolist(), strict=True):
        chosen = [(names[p], _rounded(row[p + 1])) for p in order]
        out.append(schemas.Pair(subject=s, object=o, related=_rounded(sum(row[1:])), predicates=chosen))
    return out


def _rounded(share: float) -> float:
    """To four significant digits: probabilities may be tiny, and the page divides them by P(related)."""
    return float(f"{share:.4g}")
