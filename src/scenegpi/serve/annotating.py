"""Routes of annotation: read, save, history, names, progress, export."""

from __future__ import annotations

import io
import tempfile
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query, Response

from scenegpi.data.columns import SPLITS
from scenegpi.data.convert import convert
from scenegpi.data.jsonl import write_jsonl
from scenegpi.data.open import open_dataset
from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import to_dict
from scenegpi.serve import schemas
from scenegpi.serve.annotations import CONFIRMED, Annotations, ConflictError, NotWrittenError, State
from scenegpi.serve.browsing import Image
from scenegpi.serve.library import Library
from scenegpi.serve.predicting import read_graph
from scenegpi.serve.problems import problems
from scenegpi.store.sql import Among
from scenegpi.vocabulary import Vocabulary

PAGE = 200
FILES = {
    "visual-genome": ("annotations-vg.zip", "application/zip"),
    "coco": ("annotations-coco.json", "application/json"),
    "jsonl": ("annotations.jsonl", "application/x-ndjson"),
    "label-studio": ("annotations-label-studio.json", "application/json"),
}
Format = Literal["visual-genome", "coco", "jsonl", "label-studio"]


class Annotating:
    """The routes.

    Args:
        annotations: what is saved.
        library: the images.
        vocabulary: labels and predicates that a person chooses from; they may add to them.
        boxes: at most in one image.
    """

    def __init__(self, annotations: Annotations, library: Library, vocabulary: Vocabulary, boxes: int) -> None:
        self.annotations, self.library, self.boxes = annotations, library, boxes
        self._base = vocabulary

    @property
    def vocabulary(self) -> Vocabulary:
        """With the names that people added."""
        return self.annotations.vocabulary(self._base)

    def router(self) -> APIRouter:
        """The routes."""
        router = APIRouter(tags=["annotate"])
        gone = problems(404)
        router.get("/api/annotations", response_model=schemas.Progress)(self.progress)
        router.get("/api/annotations/{image}", response_model=schemas.AnnotationAnswer, responses=gone)(self.read)
        router.put("/api/annotations/{image}", response_model=schemas.Saved, responses=problems(404, 409, 507))(
            self.save
        )
        router.get("/api/annotations/{image}/history", response_model=schemas.History, responses=gone)(self.history)
        router.get("/api/next", response_model=schemas.Next)(self.next)
        router.post("/api/names", response_model=schemas.Names, responses=problems(507))(self.add_names)
        contents = {kind: {"schema": {"type": "string", "format": "binary"}} for _, kind in FILES.values()}
        files: dict[int | str, dict[str, Any]] = {200: {"description": "The file.", "content": contents}}
        router.get("/api/export/{format}", response_class=Response, responses=files)(self.export)
        return router

    def progress(self) -> schemas.Progress:
        """How far the pictures are."""
        images, done, relations = self.annotations.counts()
        statuses: dict[str, Any] = {key: state.status for key, state in list(self.annotations.states.items())}
        total = len(self.library)
        return schemas.Progress(total=total, images=images, done=done, relations=relations, statuses=statuses)

    def read(self, image: Image) -> schemas.AnnotationAnswer:
        """What is saved of an image, and the names that there are."""
        key = self._key(image)
        state = self.annotations.states.get(key)
        words = self.vocabulary
        names: dict[str, Any] = {"objects": list(words.objects), "predicates": list(words.predicates)}
        if state is None:
            return schemas.AnnotationAnswer(image=image, key=key, graph=None, revision=0, **names)
        return schemas.AnnotationAnswer(image=image, key=key, change=state.change, **_fields(state), **names)

    def save(self, image: Image, annotation: schemas.Annotation) -> schemas.Saved:
        """Keeps what a person says of an image: on the disk before the answer."""
        key = self._key(image)
        graph = in_words(read_graph(annotation.graph, self.boxes), self.vocabulary)
        known = self.library.graph(image)
        given = key if known is None or known.image_id is None else known.image_id
        graph = graph.replace(image_id=given, file=key if known is None else known.file)
        try:
            state = self.annotations.save(
                key,
                graph,
                annotation.status,
                annotation.based_on,
                machine=[k for k in annotation.machine if k < len(graph)],
                by=annotation.by.strip(),
                comment=annotation.comment.strip(),
                change=annotation.change,
            )
        except ConflictError:
            raise HTTPException(409, "this picture was changed elsewhere in the meantime; nothing was saved") from None
        except NotWrittenError as error:
            raise HTTPException(507, error.message) from None
        images, done, relations = self.annotations.counts()
        return schemas.Saved(revision=state.revision, images=images, done=done, relations=relations)

    def history(self, image: Image) -> schemas.History:
        """The last states of an image, newest first."""
        states = self.annotations.history(self._key(image))
        return schemas.History(versions=[schemas.Version(at=state.at, **_fields(state)) for state in states])

    def next(
        self, after: Annotated[int, Query(ge=-1, le=2**53)] = -1, order: Literal["added", "uncertain"] = "added"
    ) -> schemas.Next:
        """The first image after this one that is neither done nor rejected, from the start again after the last.

        Or, in the order `uncertain`, the one of which the model is least sure, where there are predictions.
        """
        if order == "uncertain":
            states = list(self.annotations.states.items())
            closed = Among(frozenset(key for key, state in states if state.status != "begun"), False)
            best = self.library.images(2, 0, [closed], uncertain=True)[0]
            return schemas.Next(image=next((each.image for each in best if each.image != after), None))
        first = None
        for offset in range(0, len(self.library), PAGE):
            for each in self.library.images(PAGE, offset)[0]:
                state = self.annotations.states.get(each.key)
                if each.image == after or (state is not None and state.status != "begun"):
                    continue
                if each.image > after:
                    return schemas.Next(image=each.image)
                first = each.image if first is None else first
        return schemas.Next(image=first)

    def add_names(self, names: schemas.Names) -> schemas.Names:
        """Adds to the vocabulary; all names that there are afterwards."""
        before = self.vocabulary
        objects = [name.strip() for name in names.objects if name.strip() not in before.object_index]
        predicates = [name.strip() for name in names.predicates if name.strip() not in before.predicate_index]
        try:
            Vocabulary(tuple(dict.fromkeys(objects)), tuple(dict.fromkeys(predicates)))
            self.annotations.add_names(objects, predicates)
        except NotWrittenError as error:
            raise HTTPException(507, error.message) from None
        except ValueError as error:
            raise HTTPException(422, str(error)) from None
        words = self.vocabulary
        return schemas.Names(objects=list(words.objects), predicates=list(words.predicates))

    def export(
        self,
        format: Format,
        status: Literal["done", "reviewed", "all"] = "done",
        test: Annotated[int, Query(ge=0, le=1000, description="One picture in so many is for testing.")] = 0,
    ) -> Response:
        """Annotations in one file (Visual Genome's three in a zip), ready for `scenegpi train`.

        Of pictures that are done or reviewed, of reviewed ones only, or of all but rejected ones; of those that are
        only begun without boxes that no person has touched. A picture that is for testing stays so.
        """
        statuses = {"done": CONFIRMED, "reviewed": ("reviewed",), "all": ("begun", *CONFIRMED)}[status]
        words = self.vocabulary
        graphs = [in_words(graph, words) for graph in self.annotations.graphs(statuses)]
        if not graphs:
            some = (
                "is done yet" if status == "done" else "was reviewed yet" if status == "reviewed" else "was begun yet"
            )
            raise HTTPException(422, f"nothing to export: no picture {some}")
        name, kind = FILES[format]
        with tempfile.TemporaryDirectory(prefix="scenegpi-") as place:
            lines = Path(place) / "annotations.jsonl"
            write_jsonl(lines, graphs, [SPLITS["test" if _aside(graph, test) else "train"] for graph in graphs])
            target = Path(place) / ("vg" if format == "visual-genome" else "out.json")
            try:
                if format != "jsonl":
                    convert(open_dataset(lines), target, format)
            except DataError as error:
                raise HTTPException(422, error.message) from None
            data = (
                lines.read_bytes() if format == "jsonl" else _zipped(target) if target.is_dir() else target.read_bytes()
            )
        return Response(data, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})

    def _key(self, image: int) -> str:
        try:
            return self.library.key(image)
        except DataError:
            raise HTTPException(404, f"no image {image}") from None


def in_words(graph: SceneGraph, vocabulary: Vocabulary) -> SceneGraph:
    """In a vocabulary, and without scores: a person is sure. 422 that names all unknown names."""
    words = [graph.vocabulary.predicates[p] for p in graph.relations[:, 2].tolist()]
    unknown = {name for name in graph.names if name not in vocabulary.object_index}
    unknown |= {word for word in words if word not in vocabulary.predicate_index}
    if unknown:
        some = ", ".join(f"{name!r:.60}" for name in sorted(unknown)[:5])
        raise HTTPException(422, f"not among the names that are annotated: {some}")
    ends = graph.relations[:, :2].tolist()
    return SceneGraph(
        graph.boxes,
        graph.names,
        vocabulary,
        [(s, o, word) for (s, o), word in zip(ends, words, strict=True)],
        attributes=graph.attributes,
        image_id=graph.image_id,
        file=graph.file,
        width=graph.width,
        height=graph.height,
    )


def _fields(state: State) -> dict[str, Any]:
    said = {name: getattr(state, name) for name in ("status", "revision", "by", "comment")}
    return {**said, "machine": list(state.machine), "graph": to_dict(state.graph)}


def _aside(graph: SceneGraph, one_in: int) -> bool:
    """Whether an image is for testing, by its id alone."""
    return one_in > 0 and int(sha256(str(graph.image_id).encode()).hexdigest(), 16) % one_in == 0


def _zipped(folder: Path) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, path.name)
    return memory.getvalue()
