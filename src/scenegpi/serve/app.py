"""The server: routes, guard, static files, startup and shutdown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, HTTPException, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer

from scenegpi import __version__
from scenegpi.data.images import ImageFolders
from scenegpi.errors import SceneGPIError
from scenegpi.models.shipped import model_vocabulary
from scenegpi.prediction.defaults import PHOTO
from scenegpi.prediction.finding import FinderSpec
from scenegpi.serve import schemas
from scenegpi.serve.annotating import Annotating
from scenegpi.serve.annotations import Annotations, State
from scenegpi.serve.batching import Predictions
from scenegpi.serve.browsing import Browsing, Searches
from scenegpi.serve.exchanging import Exchanging
from scenegpi.serve.guard import Guard
from scenegpi.serve.label_studio import LabelStudio
from scenegpi.serve.library import Library
from scenegpi.serve.predicting import Predicting
from scenegpi.serve.problems import EVERYWHERE, invalid, not_allowed, problems, unusable
from scenegpi.serve.running import Running
from scenegpi.serve.settings import Access, Bounds
from scenegpi.viz.report.page import asset
from scenegpi.vocabulary import Vocabulary

SHARED = ("base.css", "gallery.js")  # of the report
KINDS = {".css": "text/css", ".js": "text/javascript", ".html": "text/html"}


@dataclass(frozen=True)
class Studio:
    """The arguments of a server.

    Args:
        path: a store, a data set, a folder of photos, or None.
        photos: folder of the photos, if it is not next to the data.
        annotations: folder for annotations; None: nothing can be annotated.
        model: for all predictions; None chooses by the input.
        vocabulary: labels and predicates to annotate with; by default those of the data, or else of the model.
        label_studio: also answer Label Studio as an ML backend.
        finder: finds boxes in photos; None for the package's own finder.
        moved: the data that was annotated is now at `path`.
        work: folder for predictions from the page; None: the page can't predict folders.
    """

    path: Path | None = None
    photos: Path | None = None
    annotations: Path | None = None
    model: str | None = None
    vocabulary: Vocabulary | None = None
    access: Access = field(default_factory=lambda: Access.of("127.0.0.1", 8000))
    bounds: Bounds = field(default_factory=Bounds)
    device: str = "cpu"
    label_studio: bool = False
    finder: FinderSpec | None = None
    moved: bool = False
    work: Path | None = None


def create_app(studio: Studio) -> FastAPI:
    """The application; its images, models and annotations are open from startup to shutdown."""
    held = ExitStack()
    library = Library(studio.path, studio.photos, studio.bounds.search_seconds, studio.work)
    held.callback(library.close)
    predictions = Predictions(studio.bounds, studio.device, studio.finder)
    searches = Searches(studio.bounds.searches)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        predictions.start()
        try:
            yield
        finally:
            searches.close()
            predictions.stop()
            held.close()

    about = "Scene graphs of photos and boxes, search, annotation."
    app = FastAPI(
        title="scenegpi", version=__version__, description=about, lifespan=life, docs_url=None, redoc_url=None
    )
    predicting = Predicting(predictions, library, studio.bounds, studio.model)
    routes: list[Any] = [predicting]
    if studio.label_studio:
        beside = [folder for folder in (studio.photos, studio.path) if folder is not None and folder.is_dir()]
        routes.append(LabelStudio(predicting, ImageFolders(beside)))
    source = "" if studio.path is None else str(studio.path.resolve())
    vocabulary = studio.vocabulary or library.vocabulary or model_vocabulary(studio.model or PHOTO)
    states: dict[str, State] = {}
    annotate = studio.annotations is not None and len(library) > 0
    if studio.annotations is not None and annotate:
        kept = held.enter_context(Annotations(studio.annotations, source, studio.moved))
        annotating, states = Annotating(kept, library, vocabulary, studio.bounds.annotated), kept.states
        routes += [annotating, Exchanging(annotating)]
    predict = studio.work is not None and library.by_place
    if predict:
        running = Running(library, studio.bounds, studio.model, studio.finder, studio.device)
        held.callback(running.close)
        routes.append(running)
    known: Any = {"kind": library.kind, "name": library.name, "model": studio.model}
    known["id"] = sha256(source.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    info = schemas.LibraryInfo(total=0, search=False, annotate=annotate, predict=predict, **known)  # counted when asked
    routes.insert(1, Browsing(library, info, searches, states))
    # The guard checks the token; the routes only declare it.
    token = [Depends(HTTPBearer(auto_error=False))] if studio.access.token else []
    for each in routes:
        app.include_router(each.router, responses=EVERYWHERE, dependencies=token)
    _pages(app)
    app.add_exception_handler(SceneGPIError, unusable)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(405, not_allowed)
    app.add_middleware(Guard, access=studio.access, body=studio.bounds.body, seconds=studio.bounds.arriving)
    return app


def _pages(app: FastAPI) -> None:
    static = files(__package__).joinpath("static")
    own = {entry.name for entry in static.iterdir() if Path(entry.name).suffix in KINDS}

    @app.get("/health", tags=["server"], responses=problems(421))
    def health() -> schemas.Health:
        """Whether the server answers."""
        return schemas.Health(version=__version__)

    @app.get("/", include_in_schema=False)
    def page() -> Response:
        return static_file("index.html")

    @app.get("/docs", include_in_schema=False)
    def docs() -> Response:
        return static_file("docs.html")

    @app.get("/static/{name}", include_in_schema=False)
    def static_file(name: str) -> Response:
        if name in SHARED:
            return Response(asset(name), media_type=KINDS[Path(name).suffix])
        if name not in own:  # by name from a list: no path is built from a request
            raise HTTPException(404, "no such file")
        return Response(static.joinpath(name).read_bytes(), media_type=KINDS[Path(name).suffix])
