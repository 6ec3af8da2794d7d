"""Routes of annotation: read, save, progress, export."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Literal

from fastapi import APIRouter, HTTPException, Response

from scenegpi.data.convert import convert
from scenegpi.data.jsonl import write_jsonl
from scenegpi.data.open import open_dataset
from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import to_dict
from scenegpi.serve import schemas
from scenegpi.serve.annotations import Annotations
from scenegpi.serve.browsing import Image
from scenegpi.serve.library import Library
from scenegpi.serve.predicting import read_graph
from scenegpi.vocabulary import Vocabulary

TRAIN = 0
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
        vocabulary: labels and predicates that a person chooses from.
        boxes: at most in one image.
    """

    def __init__(self, annotations: Annotations, library: Library, vocabulary: Vocabulary, boxes: int) -> None:
        self.annotations, self.library, self.vocabulary, self.boxes = annotations, library, vocabulary, boxes

    def router(self) -> APIRouter:
        """The routes."""
        router = APIRouter(tags=["annotate"])
        gone: dict[int | str, dict[str, Any]] = {404: {"description": "No such image."}}
        router.get("/api/annotations", response_model=schemas.Progress)(self.progress)
        router.get("/api/annotations/{image}", response_model=schemas.AnnotationAnswer, responses=gone)(self.read)
        router.put("/api/annotations/{image}", response_model=schemas.Saved, responses=gone)(self.save)
        router.get("/api/export/{format}", response_class=Response)(self.export)
        return router

    def progress(self) -> schemas.Progress:
        """How far the person is."""
        images, done, relations = self.annotations.counts()
        keys = {key: state.done for key, state in self.annotations.states.items()}
        return schemas.Progress(total=len(self.library), images=images, done=done, relations=relations, keys=keys)

    def read(self, image: Image) -> schemas.AnnotationAnswer:
        """What is saved of an image."""
        key = self._key(image)
        state = self.annotations.states.get(key)
        return schemas.AnnotationAnswer(
            image=image,
            key=key,
            graph=None if state is None else to_dict(state.graph),
            done=state is not None and state.done,
            revision=0 if state is None else state.revision,
            objects=list(self.vocabulary.objects),
            predicates=list(self.vocabulary.predicates),
        )

    def save(self, image: Image, annotation: schemas.Annotation) -> schemas.Saved:
        """Keeps what a person says of an image: on the disk before the answer."""
        key = self._key(image)
        graph = self._own_words(read_graph(annotation.graph, self.boxes))
        known = self.library.graph(image)
        given = key if known is None or known.image_id is None else known.image_id
        graph = graph.replace(image_id=given, file=key if known is None else known.file)
        state = self.annotations.save(key, graph, annotation.done, annotation.revision)
        images, done, relations = self.annotations.counts()
        return schemas.Saved(revision=state.revision, images=images, done=done, relations=relations)

    def export(self, format: Format, done: bool = False) -> Response:
        """All annotations in one file (Visual Genome's three in a zip), ready for `scenegpi train`."""
        graphs = list(self.annotations.graphs(done))
        if not graphs:
            raise HTTPException(422, "there is nothing to export yet")
        name, kind = FILES[format]
        with tempfile.TemporaryDirectory(prefix="scenegpi-") as place:
            lines = Path(place) / "annotations.jsonl"
            write_jsonl(lines, graphs, [TRAIN] * len(graphs))
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

    def _own_words(self, graph: SceneGraph) -> SceneGraph:
        """In the vocabulary of these annotations, and without scores: a person is sure. 422 for an unknown name."""
        words = [graph.vocabulary.predicates[p] for p in graph.relations[:, 2].tolist()]
        unknown = next((name for name in graph.names if name not in self.vocabulary.object_index), None)
        unknown = unknown or next((word for word in words if word not in self.vocabulary.predicate_index), None)
        if unknown is not None:
            raise HTTPException(422, f"graph: {unknown!r:.60} is not among the names that are annotated")
        ends = graph.relations[:, :2].tolist()
        return SceneGraph(
            graph.boxes,
            graph.names,
            self.vocabulary,
            [(s, o, word) for (s, o), word in zip(ends, words, strict=True)],
            width=graph.width,
            height=graph.height,
        )


def _zipped(folder: Path) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, path.name)
    return memory.getvalue()
