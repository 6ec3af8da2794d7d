"""The server: routes, guard, static files, from start to stop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse

from scenegpi import __version__
from scenegpi.errors import DataError, SceneGPIError
from scenegpi.models.shipped import model_vocabulary
from scenegpi.prediction.defaults import PHOTO
from scenegpi.serve import schemas
from scenegpi.serve.annotating import Annotating
from scenegpi.serve.annotations import Annotations
from scenegpi.serve.batching import Predictions
from scenegpi.serve.browsing import Browsing
from scenegpi.serve.guard import Guard
from scenegpi.serve.library import Library
from scenegpi.serve.predicting import Predicting
from scenegpi.serve.settings import Access, Bounds
from scenegpi.viz.report.page import asset
from scenegpi.vocabulary import Vocabulary

SHARED = ("base.css", "gallery.js")
"""Of the report."""
KINDS = {".css": "text/css", ".js": "text/javascript", ".html": "text/html"}


@dataclass(frozen=True)
class Studio:
    """What a server is started with.

    Args:
        path: a store, a data set, a folder of photos, or None.
        photos: folder of the photos, where it is not beside the data.
        annotations: folder for annotations; None: there are none to make.
        model: for all predictions; None chooses by the input.
        vocabulary: labels and predicates to annotate with; by default those of the data, or else of the model.
    """

    path: Path | None = None
    photos: Path | None = None
    annotations: Path | None = None
    model: str | None = None
    vocabulary: Vocabulary | None = None
    access: Access = field(default_factory=lambda: Access.of("127.0.0.1", 8000))
    bounds: Bounds = field(default_factory=Bounds)
    device: str = "cpu"


def create_app(studio: Studio) -> FastAPI:
    """The application; its images, models and annotations are open from its start to its stop."""
    held = ExitStack()
    library = Library(studio.path, studio.photos, studio.bounds.seconds)
    held.callback(library.close)
    predictions = Predictions(studio.bounds, studio.device)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        predictions.start()
        try:
            yield
        finally:
            predictions.stop()
            held.close()

    about = "Scene graphs of photos and boxes, search, annotation."
    app = FastAPI(
        title="scenegpi", version=__version__, description=about, lifespan=life, docs_url=None, redoc_url=None
    )
    vocabulary = studio.vocabulary or library.vocabulary or model_vocabulary(studio.model or PHOTO)
    annotate = studio.annotations is not None and len(library) > 0
    info = schemas.LibraryInfo(
        kind=library.kind,  # type: ignore[arg-type]
        name=library.name,
        total=len(library),
        search=library.store is not None,
        annotate=annotate,
        model=studio.model,
    )
    app.include_router(Predicting(predictions, library, studio.bounds, studio.model).router())
    app.include_router(Browsing(library, info).router())
    if annotate and studio.annotations is not None:
        kept = held.enter_context(Annotations(studio.annotations))
        app.include_router(Annotating(kept, library, vocabulary, studio.bounds.boxes).router())
    _pages(app)
    app.add_exception_handler(SceneGPIError, _problem)
    app.add_middleware(Guard, access=studio.access, body=studio.bounds.body)
    return app


def _pages(app: FastAPI) -> None:
    static = files(__package__).joinpath("static")
    own = {entry.name for entry in static.iterdir() if Path(entry.name).suffix in KINDS}

    @app.get("/health", response_model=schemas.Health, tags=["server"])
    def health() -> schemas.Health:
        """Whether the server answers."""
        return schemas.Health(version=__version__)

    @app.get("/", include_in_schema=False)
    def page() -> Response:
        return Response(static.joinpath("index.html").read_bytes(), media_type="text/html")

    @app.get("/docs", include_in_schema=False)
    def docs() -> Response:
        return Response(static.joinpath("docs.html").read_bytes(), media_type="text/html")

    @app.get("/static/{name}", include_in_schema=False)
    def static_file(name: str) -> Response:
        if name in SHARED:
            return Response(asset(name), media_type=KINDS[Path(name).suffix])
        if name not in own:  # by name from a list: no path is made of what a request says
            raise HTTPException(404, "no such file")
        return Response(static.joinpath(name).read_bytes(), media_type=KINDS[Path(name).suffix])


def _problem(_: Request, error: Any) -> JSONResponse:
    """One line; where this server keeps its files is nobody's business."""
    text = error.message if isinstance(error, DataError) else str(error)
    return JSONResponse({"detail": text}, status_code=422)
