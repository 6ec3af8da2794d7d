"""Routes of annotation: read, save, history, names, progress, export."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from shutil import make_archive
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query, Response

from scenegpi.data.convert import convert
from scenegpi.data.graphs import SPLITS
from scenegpi.data.jsonl import write_jsonl
from scenegpi.data.open import open_dataset
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import to_dict
from scenegpi.serve import schemas
from scenegpi.serve.annotations import CONFIRMED, Annotations, ConflictError, State
from scenegpi.serve.browsing import Image, Order
from scenegpi.serve.library import Library
from scenegpi.serve.predicting import read_graph
from scenegpi.serve.problems import file_answer, problems
from scenegpi.store.sql import Among
from scenegpi.vocabulary import Vocabulary

FILES = {
    "visual-genome": ("annotations-vg.zip", "application/zip"),
    "coco": ("annotations-coco.json", "application/json"),
    "jsonl": ("annotations.jsonl", "application/x-ndjson"),
    "label-studio": ("annotations-label-studio.json", "application/json"),
}
Format = Literal["visual-genome", "coco", "jsonl", "label-studio"]


class Annotating:
    """The routes; users choose names from `vocabulary` and may add to it. At most `boxes` per image."""

    def __init__(self, annotations: Annotations, library: Library, vocabulary: Vocabulary, boxes: int) -> None:
        self.annotations, self.library, self.boxes = annotations, library, boxes
        self._base = vocabulary
        self.router, gone = APIRouter(tags=["annotate"]), problems(404)
        self.router.get("/api/annotations")(self.progress)
        self.router.get("/api/annotations/{image}", responses=gone)(self.read)
        self.router.put("/api/annotations/{image}", responses=problems(404, 409, 507))(self.save)
        self.router.get("/api/annotations/{image}/history", responses=gone)(self.history)
        self.router.get("/api/next")(self.next)
        self.router.post("/api/names", responses=problems(507))(self.add_names)
        files = file_answer(*(kind for _, kind in FILES.values()))
        self.router.get("/api/export/{format}", response_class=Response, responses=files)(self.export)

    @property
    def vocabulary(self) -> Vocabulary:
        """Including the names that users added."""
        return self.annotations.vocabulary(self._base)

    def progress(self) -> schemas.Progress:
        """The number of annotated pictures, and the status of each."""
        statuses: dict[str, Any] = {key: state.status for key, state in list(self.annotations.states.items())}
        return schemas.Progress(total=len(self.library), statuses=statuses, **self.annotations.counts())

    def read(self, image: Image) -> schemas.AnnotationAnswer:
        """The saved annotation of an image, and the names to annotate with."""
        key, words = self.library.key(image), self.vocabulary
        state = self.annotations.states.get(key)
        saved: dict[str, Any] = {"graph": None, "revision": 0} if state is None else _fields(state, "change")
        return schemas.AnnotationAnswer(
            image=image, key=key, objects=words.objects, predicates=words.predicates, **saved
        )

    def save(self, image: Image, annotation: schemas.Annotation) -> schemas.Saved:
        """Saves an annotation of an image; it is on the disk before the response."""
        key = self.library.key(image)
        graph = in_words(read_graph(annotation.graph, self.boxes), self.vocabulary)
        graph = graph.replace(**self.library.about({image: key})[key])
        said = {"by": annotation.by.strip(), "comment": annotation.comment.strip(), "change": annotation.change}
        machine = [k for k in annotation.machine if k < len(graph)]
        try:
            state = self.annotations.save(key, graph, annotation.status, annotation.based_on, machine, **said)
        except ConflictError:
            raise HTTPException(409, "this picture has been changed elsewhere; nothing was saved") from None
        return schemas.Saved(revision=state.revision, **self.annotations.counts())

    def history(self, image: Image) -> schemas.History:
        """The last states of an image, newest first."""
        states = self.annotations.history(self.library.key(image))
        return schemas.History(versions=[schemas.Version(**_fields(state, "at")) for state in states])

    def next(self, after: Annotated[int, Query(ge=-1, le=2**53)] = -1, order: Order = "added") -> schemas.Next:
        """The next image after this one that is neither done nor rejected; wraps around after the last.

        Or, with order `uncertain`, the image about which the model is least certain.
        """
        states = list(self.annotations.states.items())
        closed = frozenset(key for key, state in states if state.status != "begun")
        if order == "uncertain":
            best = [each.image for each in self.library.images(2, 0, [Among(closed, False)], uncertain=True)[0]]
        else:
            every = [image for image, key, _ in self.library.called() if key not in closed]
            best = [image for image in every if image > after] + every
        return schemas.Next(image=next((image for image in best if image != after), None))

    def add_names(self, names: schemas.Names) -> schemas.Names:
        """Adds names to the vocabulary; returns all its names."""
        self.add_new(map(str.strip, names.objects), map(str.strip, names.predicates))
        words = self.vocabulary
        return schemas.Names(objects=list(words.objects), predicates=list(words.predicates))

    def add_new(self, objects: Iterable[str], predicates: Iterable[str]) -> dict[str, list[str]]:
        """Adds the names that the vocabulary lacks, and returns them; 422 if a name is invalid."""
        words = self.vocabulary
        new = {
            "objects": [name for name in dict.fromkeys(objects) if name not in words.object_index],
            "predicates": [name for name in dict.fromkeys(predicates) if name not in words.predicate_index],
        }
        try:
            Vocabulary(new["objects"], new["predicates"])
        except ValueError as error:
            raise HTTPException(422, str(error)) from None
        self.annotations.add_names(**new)
        return new

    def export(
        self,
        format: Format,
        status: Literal["done", "reviewed", "all"] = "done",
        test: Annotated[int, Query(ge=0, le=1000, description="Use one picture in N for testing; 0: none.")] = 0,
    ) -> Response:
        """Annotations in one file (Visual Genome's three in a zip), ready for `scenegpi train`.

        Exports pictures that are done or reviewed, only reviewed ones, or all except rejected ones; pictures that are
        only begun come without boxes that no person has touched. A test picture is one in every export.
        """
        statuses = {"done": CONFIRMED, "reviewed": ("reviewed",), "all": ("begun", *CONFIRMED)}[status]
        words = self.vocabulary
        graphs = [in_words(graph, words) for graph in self.annotations.graphs(statuses)]
        if not graphs:
            some = {"done": "is done", "reviewed": "was reviewed", "all": "was begun"}[status]
            raise HTTPException(422, f"nothing to export: no picture {some} yet")
        name, kind = FILES[format]
        with tempfile.TemporaryDirectory(prefix="scenegpi-") as place:
            lines = Path(place) / "annotations.jsonl"
            write_jsonl(lines, graphs, [SPLITS["test" if _aside(graph, test) else "train"] for graph in graphs])
            target = lines
            if format != "jsonl":
                target = Path(place) / ("vg" if format == "visual-genome" else "out.json")
                convert(open_dataset(lines), target, format)
            if target.is_dir():
                target = Path(make_archive(str(target), "zip", target))
            data = target.read_bytes()
        return Response(data, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


def in_words(graph: SceneGraph, vocabulary: Vocabulary) -> SceneGraph:
    """The graph in a vocabulary, without scores: a person is certain. 422 that lists all unknown names."""
    words = [graph.vocabulary.predicates[p] for p in graph.relations[:, 2].tolist()]
    unknown = {name for name in graph.names if name not in vocabulary.object_index}
    unknown |= {word for word in words if word not in vocabulary.predicate_index}
    if unknown:
        some = ", ".join(f"{name!r:.60}" for name in sorted(unknown)[:5])
        raise HTTPException(422, f"not among the names to annotate with: {some}")
    links = [(s, o, word) for (s, o, _), word in zip(graph.relations.tolist(), words, strict=True)]
    about = {name: getattr(graph, name) for name in ("attributes", "image_id", "file", "width", "height")}
    return SceneGraph(graph.boxes, graph.names, vocabulary, links, **about)


def _fields(state: State, *more: str) -> dict[str, Any]:
    said = {name: getattr(state, name) for name in ("status", "revision", "by", "comment", "machine", *more)}
    return {**said, "graph": to_dict(state.graph)}


def _aside(graph: SceneGraph, one_in: int) -> bool:
    """Whether an image is used for testing, by its id alone."""
    return one_in > 0 and int(sha256(str(graph.image_id).encode()).hexdigest(), 16) % one_in == 0
