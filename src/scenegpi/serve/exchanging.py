"""Annotation files to import and continue, or to compare with (a second annotator's).

Any file that `scenegpi.data` opens is accepted: predictions or annotations as JSON lines, COCO with relations, Label
Studio's.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.concurrency import run_in_threadpool

from scenegpi.data.open import open_dataset
from scenegpi.errors import DataError
from scenegpi.evaluation.changes import compared, same_objects
from scenegpi.graph import SceneGraph
from scenegpi.prediction.inputs import resized
from scenegpi.serve.annotating import Annotating, in_words
from scenegpi.serve.problems import BODY, problems
from scenegpi.serve.schemas import Strict

FileName = Annotated[str, Query(min_length=1, max_length=200, description="Name of the file, with its suffix.")]


class Imported(Strict):
    """Numbers of pictures: begun from the file, kept as they already have annotations, and unknown."""

    imported: int
    kept: int
    unknown: int
    objects: list[str]
    predicates: list[str]


class Agreement(Strict):
    """Agreement of two annotators on the pictures that both have confirmed or begun.

    `objects`: F1 of objects, which match if their labels are equal and their boxes overlap by half. `relations`: F1 of
    relations between these, with the same predicate. `predicates`: the fraction of ordered pairs, related by both, with
    the same predicate; `kappa`: Cohen's, which takes chance into account. Null if there is nothing to compare.
    """

    pictures: int
    objects: float | None
    relations: float | None
    predicates: float | None
    kappa: float | None
    pairs: int


class Exchanging:
    """The routes, in addition to those of `annotating`; names of a file are added to its vocabulary."""

    def __init__(self, annotating: Annotating) -> None:
        self.annotating, self.annotations, self.library = annotating, annotating.annotations, annotating.library
        self.router = APIRouter(tags=["annotate"])
        self.router.post("/api/import", responses=problems(507), openapi_extra=BODY)(self.read)
        self.router.post("/api/agreement", openapi_extra=BODY)(self.agree)

    async def read(self, request: Request, name: FileName) -> Imported:
        """Begins pictures with the annotations of a file (the body); pictures already begun are unchanged."""
        return await run_in_threadpool(self._import, await request.body(), name)

    async def agree(self, request: Request, name: FileName) -> Agreement:
        """Agreement of another annotator's file (the body) with the saved annotations."""
        return await run_in_threadpool(self._agree, await request.body(), name)

    def _import(self, data: bytes, name: str) -> Imported:
        new: dict[str, tuple[SceneGraph, list[int]]] = {}
        keys: dict[int, str] = {}
        known = unknown = 0
        for image, graph in self._graphs(data, name):
            if image is None:
                unknown += 1
            elif image[1] in self.annotations.states:
                known += 1
            else:
                unsure = [] if graph.scores is None else [k for k, score in enumerate(graph.scores) if score < 1]
                keys[image[0]] = image[1]
                new[image[1]] = graph, unsure
        graphs = [graph for graph, _ in new.values()]
        used = [graph.vocabulary.predicates[p] for graph in graphs for p in graph.relations[:, 2].tolist()]
        names = self.annotating.add_new([label for graph in graphs for label in graph.names], used)
        words = self.annotating.vocabulary
        about, sizes = self.library.about(keys), self.library.sizes(keys)
        for number, key in keys.items():  # the file may be of photos of another size
            graph, unsure = new[key]
            new[key] = resized(in_words(graph, words), *sizes[number]).replace(**about[key]), unsure
        self.annotations.begin(new, f"imported from {Path(name).name}")
        return Imported(imported=len(new), kept=known, unknown=unknown, **names)

    def _agree(self, data: bytes, name: str) -> Agreement:
        pictures = matched = objects = same = relations = 0
        predicates: list[tuple[str, str]] = []
        for image, graph in self._graphs(data, name):
            state = None if image is None else self.annotations.states.get(image[1])
            if state is None or state.status == "rejected":
                continue
            own, pictures = state.confirmed(), pictures + 1
            other = resized(graph, own.width, own.height)
            place = same_objects(own, other)
            change = compared("", own, other)
            matched, objects = matched + 2 * len(place), objects + len(own) + len(other)
            same, relations = same + 2 * change.same, relations + len(own.relations) + len(other.relations)
            mine, theirs = _one_each(own), _one_each(other)
            ends = {(place[s], place[o]): word for (s, o), word in mine.items() if s in place and o in place}
            predicates += [(word, theirs[pair]) for pair, word in ends.items() if pair in theirs]
        if not pictures:
            raise HTTPException(422, f"{Path(name).name:.100}: none of its pictures are annotated here")
        equal = sum(a == b for a, b in predicates)
        shares = {"objects": (matched, objects), "relations": (same, relations), "predicates": (equal, len(predicates))}
        found = {name: part / whole if whole else None for name, (part, whole) in shares.items()}
        return Agreement(pictures=pictures, kappa=kappa(predicates), pairs=len(predicates), **found)

    def _graphs(self, data: bytes, name: str) -> Iterator[tuple[tuple[int, str] | None, SceneGraph]]:
        """Number and key of an image (None: unknown here), and its graph in the file.

        422 if the file can't be read, or if two of its images are the same one here.
        """
        find, seen = _finder(self.library.called()), set[tuple[int, str]]()
        suffix = Path(name).suffix.lower()
        with tempfile.TemporaryDirectory(prefix="scenegpi-") as folder:
            path = Path(folder) / f"file{suffix if suffix in ('.json', '.jsonl', '.csv') else '.json'}"
            path.write_bytes(data)
            try:
                for graph in open_dataset(path):
                    if len(graph) > (most := self.annotating.boxes):
                        raise HTTPException(422, f"{len(graph)} boxes in one image, at most {most}")
                    image = find(graph)
                    if image is not None and image in seen:
                        raise HTTPException(422, f"{Path(name).name:.100}: two of its images are {image[1]}")
                    seen |= set() if image is None else {image}
                    yield image, graph
            except DataError as error:
                raise HTTPException(422, f"{Path(name).name:.100}: {error.message}") from None


def _finder(called: Iterable[tuple[int, str, str | None]]) -> Callable[[SceneGraph], tuple[int, str] | None]:
    """Finds the number and key of the image that a graph names.

    By its key or file; or by the last part of its file, with or without suffix, if no other image here has the same.
    The id of a graph that has a file may be another tool's number: only a whole key is found by it.
    """
    whole: dict[str, tuple[int, str]] = {}
    short: dict[str, set[tuple[int, str]]] = defaultdict(set)
    for number, key, file in called:
        for each in (key, file or key):
            whole.setdefault(each, (number, key))
            for part in (Path(each).name, Path(each).stem):
                short[part].add((number, key))

    def find(graph: SceneGraph) -> tuple[int, str] | None:
        file, own = graph.file or "", "" if graph.image_id is None else str(graph.image_id)
        for each in (file, own):
            if each in whole:
                return whole[each]
        for part in (Path(file).name, Path(file).stem) if file else (own,):
            if len(found := short.get(part, ())) == 1:
                return next(iter(found))
        return None

    return find


def _one_each(graph: SceneGraph) -> dict[tuple[int, int], str]:
    """Ordered pairs with exactly one relation, and its predicate."""
    rows = graph.relations.tolist()
    often = Counter((s, o) for s, o, _ in rows)
    return {(s, o): graph.vocabulary.predicates[p] for s, o, p in rows if often[s, o] == 1}


def kappa(pairs: list[tuple[str, str]]) -> float | None:
    """Cohen's kappa, (p - e) / (1 - e): p is the observed agreement, e that expected by chance; None if e is 1."""
    if not pairs:
        return None
    total = len(pairs)
    agree = sum(a == b for a, b in pairs) / total
    first, second = (Counter(side) for side in zip(*pairs, strict=True))
    chance = sum(count * second[name] for name, count in first.items()) / total**2
    return None if chance == 1 else (agree - chance) / (1 - chance)
