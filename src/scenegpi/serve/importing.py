"""Files of others in the page: annotations to go on with.

A file is what `scenegpi.data` opens: predictions or annotations as JSON lines, COCO with relations, Label Studio's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.concurrency import run_in_threadpool

from scenegpi.data.open import open_dataset
from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.serve.annotating import Annotating, in_words
from scenegpi.serve.problems import BODY, problems
from scenegpi.serve.schemas import Strict

FileName = Annotated[str, Query(min_length=1, max_length=200, description="Of the file, with its suffix.")]


class Imported(Strict):
    """Pictures that were begun with the file's boxes and relations; those that had annotations were left alone."""

    imported: int
    kept: int
    unknown: int
    objects: list[str]
    predicates: list[str]


class Importing:
    """The routes, beside those of `annotating`; names of a file are added to its vocabulary."""

    def __init__(self, annotating: Annotating) -> None:
        self.annotating, self.annotations, self.library = annotating, annotating.annotations, annotating.library

    def router(self) -> APIRouter:
        """The routes."""
        router = APIRouter(tags=["annotate"])
        router.post("/api/import", responses=problems(507), openapi_extra=BODY)(self.read)
        return router

    async def read(self, request: Request, name: FileName) -> Imported:
        """Begins pictures with what a file, the body, says of them; pictures that were begun here stay as they are."""
        return await run_in_threadpool(self._import, await request.body(), name)

    def _import(self, data: bytes, name: str) -> Imported:
        before = self.annotating.vocabulary
        new: dict[str, tuple[SceneGraph, list[int]]] = {}
        numbers: dict[int, str] = {}
        known = unknown = 0
        for image, graph in self._graphs(data, name):
            if image is None:
                unknown += 1
            elif image[1] in self.annotations.states:
                known += 1
            else:
                unsure = [] if graph.scores is None else [k for k, score in enumerate(graph.scores) if score < 1]
                numbers[image[0]] = image[1]
                new[image[1]] = graph, unsure
        used = [graph.vocabulary.predicates[p] for graph, _ in new.values() for p in graph.relations[:, 2].tolist()]
        labels = [label for graph, _ in new.values() for label in graph.names]
        objects = [label for label in dict.fromkeys(labels) if label not in before.object_index]
        predicates = [word for word in dict.fromkeys(used) if word not in before.predicate_index]
        self.annotations.add_names(objects, predicates)
        words = self.annotating.vocabulary
        about = {key: {"image_id": key, "file": key} for key in new} | self.library.about(numbers)
        states = {key: (in_words(graph, words).replace(**about[key]), unsure) for key, (graph, unsure) in new.items()}
        self.annotations.begin(states, f"imported from {Path(name).name}")
        return Imported(imported=len(new), kept=known, unknown=unknown, objects=objects, predicates=predicates)

    def _graphs(self, data: bytes, name: str) -> Iterator[tuple[tuple[int, str] | None, SceneGraph]]:
        """Number and key of an image here, or None, and what the file says of it; 422 where it can't be read."""
        places: dict[str, tuple[int, str]] = {}
        for number, key, file in self.library.called():
            for called in (key, file or key, Path(file or key).name, Path(file or key).stem):
                places.setdefault(called, (number, key))
        suffix = Path(name).suffix.lower()
        with tempfile.TemporaryDirectory(prefix="scenegpi-") as folder:
            path = Path(folder) / f"file{suffix if suffix in ('.json', '.jsonl', '.csv') else '.json'}"
            path.write_bytes(data)
            try:
                for graph in open_dataset(path):
                    if len(graph) > (most := self.annotating.boxes):
                        raise HTTPException(422, f"{len(graph)} boxes in one image, at most {most}")
                    names = (graph.file, graph.image_id, Path(graph.file or "").name, Path(graph.file or "").stem)
                    yield next((places[str(each)] for each in names if str(each) in places), None), graph
            except DataError as error:
                raise HTTPException(422, f"{Path(name).name:.100}: {error.message}") from None
