"""Store: a folder of graphs that is added to, searched, and read back."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scenegpi.data.images import ImageFolders
from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.store.folder import MANIFEST, Manifest, add_part, connect, open_views
from scenegpi.store.parse import parse_query
from scenegpi.store.query import Query
from scenegpi.store.sql import matches, ranking
from scenegpi.store.words import StoreWords
from scenegpi.vocabulary import Vocabulary

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ALL_TABLES = ("images", "objects", "relations", "triplets", "labels")
MOST_MATCHES = 20
"""Of one image that are given back."""


@dataclass(frozen=True)
class Match:
    """The objects of one match, in the order of the query's things (None: it has no object), and its score."""

    objects: tuple[int | None, ...]
    score: float


@dataclass(frozen=True)
class Hit:
    """An image that was found: its number in the store, what it is called, its best score, and its best matches.

    `count` is how many matches it has; of more than MOST_MATCHES the best are given.
    """

    image: int
    key: str
    file: str | None
    score: float
    count: int
    matches: tuple[Match, ...] = ()


@dataclass(frozen=True)
class Answer:
    """`hits`, best first; `images`: how many were found in all; `notes` on words that the store does not have."""

    query: Query
    hits: tuple[Hit, ...]
    images: int
    notes: tuple[str, ...] = ()


class Store:
    """A folder of graphs. Safe to use from several threads; what other processes add is seen.

    Args:
        folder: where it is; made when graphs are added.
        photos: folders of photos, instead of those that were noted when graphs were added.
        seconds: that a query may take; None for any time.
    """

    def __init__(self, folder: str | Path, photos: Iterable[Path | str] = (), seconds: float | None = None) -> None:
        self.folder, self.seconds = Path(folder), seconds
        self._given = tuple(photos)
        self._lock = threading.Lock()
        self._seen = -1
        self._connection: DuckDBPyConnection | None = None

    def __len__(self) -> int:
        """Number of images."""
        return int(self._rows("SELECT count(*) FROM images")[0][0])

    def add(self, graphs: Iterable[SceneGraph], photos: Iterable[Path] = ()) -> tuple[int, int]:
        """Appends graphs, in place of images of the same id (or file); numbers of images added, and replaced.

        Whole or not at all. `photos` are the folders where their photos are.
        """
        return add_part(self.folder, graphs, photos)

    @property
    def words(self) -> StoreWords:
        """Labels, predicates and triplets with their counts."""
        self._rows("SELECT 1")
        return self._words

    def search(self, query: str | Query, limit: int = 20, offset: int = 0) -> Answer:
        """Images that a query finds, best first (docs/search.md); QueryError where it can't be understood."""
        words = self.words
        if isinstance(query, str):
            query = parse_query(query, words)
        found = matches(query, words)
        rows = self._rows(ranking(found, limit, offset), found.values)
        chosen = [int(row[0]) for row in rows]
        each = self._matches(query, words, chosen)
        about = self._about(chosen)
        hits = tuple(
            Hit(image, *about[image], float(score), int(count), each.get(image, ())) for image, score, count, _ in rows
        )
        return Answer(query, hits, int(rows[0][3]) if rows else 0, tuple(words.notes(query)))

    def similar(self, graph: SceneGraph, limit: int = 20, offset: int = 0) -> list[Hit]:
        """All images, ranked by how much of a graph they show (scenegpi.store.retrieval)."""
        from scenegpi.store.retrieval import retrieval

        text, values = retrieval(graph, self.words, len(self))
        rows = self._rows(f"{text} LIMIT {int(limit)} OFFSET {int(offset)}", values)
        about = self._about([int(row[0]) for row in rows])
        return [Hit(int(image), *about[int(image)], float(score), 1) for image, score in rows]

    def graph(self, image: int) -> SceneGraph:
        """The graph of an image by its number, with boxes and scores in single precision."""
        found = self.graphs([image])
        if not found:
            raise DataError(self.folder, f"no image with number {image}")
        return found[int(image)]

    def graphs(self, images: Iterable[int]) -> dict[int, SceneGraph]:
        """The graphs of some images by their numbers: one pass over the tables for all."""
        among = ", ".join(str(int(image)) for image in images)
        if not among:
            return {}
        about = self._rows(f"SELECT image, id, file, width, height, vocabulary FROM images WHERE image IN ({among})")
        columns = "image, label, x1, y1, x2, y2, score"
        objects = _by_image(
            self._rows(f"SELECT {columns} FROM objects WHERE image IN ({among}) ORDER BY image, object")
        )
        columns = "image, subject, object, predicate, predicate_score"
        relations = _by_image(self._rows(f"SELECT {columns} FROM relations WHERE image IN ({among})"))
        found: dict[int, SceneGraph] = {}
        for image, given, file, width, height, reference in about:
            rows, links = objects.get(image, []), relations.get(image, [])
            try:
                found[int(image)] = SceneGraph(
                    np.array([row[1:5] for row in rows], dtype=np.float64).reshape(-1, 4),
                    [row[0] for row in rows],
                    Vocabulary.from_dict(self._manifest.vocabularies.get(reference)),
                    [row[:3] for row in links],
                    scores=np.array([row[5] for row in rows], dtype=np.float32),
                    relation_scores=np.array([row[3] for row in links], dtype=np.float32),
                    image_id=None if given is None else json.loads(given),
                    file=file,
                    width=width,
                    height=height,
                )
            except ValueError as error:
                raise DataError(self.folder, f"image {image}: {error}") from None
        return found

    def key(self, image: int) -> str:
        """What an image is called; DataError where there is none of this number."""
        about = self._about([int(image)])
        if not about:
            raise DataError(self.folder, f"no image with number {image}")
        return about[int(image)][0]

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of its graphs; where they have several, one of all their names."""
        self._rows("SELECT 1")
        every = [Vocabulary.from_dict(each) for each in self._manifest.vocabularies.values()]
        if len(every) == 1:
            return every[0]
        objects = dict.fromkeys(name for each in every for name in each.objects)
        predicates = dict.fromkeys(name for each in every for name in each.predicates)
        return Vocabulary(tuple(objects), tuple(predicates))

    def images(self, limit: int = 100, offset: int = 0) -> list[Hit]:
        """Images in the order in which they were added."""
        text = f"SELECT image, key, file FROM images ORDER BY image LIMIT {int(limit)} OFFSET {int(offset)}"
        return [Hit(int(image), key, file, 1.0, 0) for image, key, file in self._rows(text)]

    def photo(self, hit: Hit | SceneGraph) -> Path | None:
        """The photo of an image, or None where there is none."""
        self._rows("SELECT 1")
        folders = ImageFolders(self._given or self._manifest.photos)
        name = hit.key if isinstance(hit, Hit) else None if hit.image_id is None else str(hit.image_id)
        return folders.find(hit.file) or folders.find(name)

    def _matches(self, query: Query, words: StoreWords, images: list[int]) -> dict[int, tuple[Match, ...]]:
        """The best matches of each of these images."""
        if not images:
            return {}
        found = matches(query, words, images)
        columns = list(found.columns.values())
        order = ", ".join(["score DESC", *columns])
        text = (
            f"SELECT image, score{''.join(f', {name}' for name in columns)} FROM ({found.text}) "
            f"QUALIFY row_number() OVER (PARTITION BY image ORDER BY {order}) <= {MOST_MATCHES} ORDER BY image, {order}"
        )
        out: dict[int, list[Match]] = {}
        for image, score, *numbers in self._rows(text, found.values):
            at = dict(zip(found.columns, numbers, strict=True))
            objects = tuple(at.get(thing) for thing in range(len(query.things)))
            out.setdefault(int(image), []).append(Match(objects, float(score)))
        return {image: tuple(some) for image, some in out.items()}

    def _about(self, images: list[int]) -> dict[int, tuple[str, str | None]]:
        if not images:
            return {}
        among = ", ".join(map(str, images))
        return {
            int(image): (key, file)
            for image, key, file in self._rows(f"SELECT image, key, file FROM images WHERE image IN ({among})")
        }

    def _rows(self, text: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        import duckdb

        with self._lock:
            self._refresh()
            assert self._connection is not None
            timer = threading.Timer(self.seconds or 0.0, self._connection.interrupt)
            if self.seconds is not None:
                timer.start()
            try:
                return self._connection.execute(text, list(values)).fetchall()
            except duckdb.InterruptException:
                raise DataError(self.folder, f"the query takes more than {self.seconds:g} s") from None
            except duckdb.Error as error:
                raise DataError(self.folder, f"cannot be searched ({str(error).splitlines()[0]})") from None
            finally:
                timer.cancel()

    def _refresh(self) -> None:
        """Opens the tables, again where `store.json` has changed."""
        try:
            seen = (self.folder / MANIFEST).stat().st_mtime_ns
        except OSError:
            seen = 0
        if seen == self._seen and self._connection is not None:
            return
        self._connection = self._connection or connect()
        self._manifest = Manifest.read(self.folder)
        open_views(self._connection, self.folder, self._manifest, ALL_TABLES)
        columns = "subject_label, predicate, object_label, sum(count)"
        triplets = self._connection.execute(f"SELECT {columns} FROM triplets GROUP BY ALL").fetchall()
        labels = self._connection.execute("SELECT label, sum(count) FROM labels GROUP BY ALL").fetchall()
        counts = {(s, p, o): int(count) for s, p, o, count in triplets}
        self._words = StoreWords({label: int(count) for label, count in labels}, counts)
        self._seen = seen


def _by_image(rows: Iterable[tuple[Any, ...]]) -> dict[int, list[tuple[Any, ...]]]:
    """Rows without their first column, by it."""
    found: dict[int, list[tuple[Any, ...]]] = {}
    for image, *rest in rows:
        found.setdefault(int(image), []).append(tuple(rest))
    return found
