"""Store: a folder of graphs to add to, search, and read back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from scenegpi.bulk.digests import NONE, photo_digest
from scenegpi.data.dataset import Dataset
from scenegpi.data.graphs import Graphs
from scenegpi.data.images import ImageFolders
from scenegpi.errors import DataError, Report, naming
from scenegpi.files import parse_json
from scenegpi.graph import SceneGraph
from scenegpi.metrics.alignment import Alignment
from scenegpi.store.change import Indexed, add_part
from scenegpi.store.folder import MANIFEST, store_files
from scenegpi.store.parse import parse_query
from scenegpi.store.query import Query, QueryError
from scenegpi.store.snapshots import Snapshots, Stop
from scenegpi.store.sql import Among, chosen, listing, matches, ranking, similar
from scenegpi.store.words import StoreWords
from scenegpi.vocabulary import Vocabulary

MOST_MATCHES = 20
"""Maximum number of matches returned per image."""
MOST_EXPECTED = 20_000_000
"""A query with more matches would take too long."""
CHUNK = 1000
"""Number of images read at once."""


class NoImageError(DataError):
    """The store has no image with this number."""


@dataclass(frozen=True)
class Match:
    """The objects of one match, in the order of the query's things (None: not matched), and its score."""

    objects: tuple[int | None, ...]
    score: float


@dataclass(frozen=True)
class Hit:
    """An image that was found: its number in the store, its key and file, its best score, and its best matches.

    `count` is the number of all its matches, of which `matches` are at most MOST_MATCHES.
    """

    image: int
    key: str
    file: str | None
    score: float
    count: int
    matches: tuple[Match, ...] = ()


@dataclass(frozen=True)
class Answer:
    """`hits`, best first; `images`: the number of all that match; `notes` on words that the store does not have."""

    query: Query
    hits: tuple[Hit, ...]
    images: int
    notes: tuple[str, ...] = ()


class Store(Snapshots):
    """A folder of graphs. Thread-safe; graphs added by other processes are seen.

    Args:
        folder: created when graphs are added.
        photos: folders of photos, instead of those given when graphs were added.
        seconds: time limit of a query; None for no limit.
    """

    def __init__(self, folder: str | Path, photos: Iterable[Path | str] = (), seconds: float | None = None) -> None:
        super().__init__(folder, seconds)
        self._given = tuple(photos)

    def __len__(self) -> int:
        """Number of images."""
        return int(self._rows("SELECT count(*) FROM images")[0][0])

    def add(self, graphs: Iterable[Indexed], photos: Iterable[Path] = ()) -> tuple[int, int]:
        """Appends graphs, replacing images with the same id (or file); returns the numbers of images added and
        replaced.

        Whole or not at all. `photos` are the folders where their photos are. What each photo is now is noted, unless
        its graph comes with the digest of the photo that it was predicted from (`changed`).
        """
        return add_part(self.folder, graphs, photos)

    @property
    def words(self) -> StoreWords:
        """Labels, predicates and triplets with their counts."""
        with self.snapshot():
            return self._opened.words

    def search(
        self,
        query: str | Query,
        limit: int = 20,
        offset: int = 0,
        stop: Stop | None = None,
        least: float = 0.0,
        among: Iterable[Among] = (),
    ) -> Answer:
        """Images that match a query, best first (docs/search.md); QueryError if it can't be understood.

        If `seconds` are limited, a query that would take far longer is refused; `stop` ends it from another thread.
        `least` is the minimum score of the best match; `among` restricts the images.
        """
        with self.snapshot():
            words = self.words
            if isinstance(query, str):
                query = parse_query(query, words)
            if self.seconds is not None and (size := words.expected_matches(query, len(self))) > MOST_EXPECTED:
                said = f"about {size:.2g} matches are too many to rank; add words, or share variables (?a)"
                raise QueryError(f"query: {said}")
            found = matches(query, words)
            where, keys = chosen(among)
            rows = self._rows(ranking(found, limit, offset, least, where), [*found.values, *keys], stop)
            each = self._matches(query, words, [int(row[0]) for row in rows], stop)
            about = self._about(row[:2] for row in rows)
        hits = (Hit(*about[image], int(count), each.get(image, ())) for image, _, count, _ in rows)
        return Answer(query, tuple(hits), int(rows[0][3]) if rows else 0, tuple(words.notes(query)))

    def similar(self, graph: SceneGraph, limit: int = 20, offset: int = 0) -> list[Hit]:
        """All images, ranked by how much of a graph they show (scenegpi.store.sql.similar)."""
        with self.snapshot():
            text, values = similar(graph, self.words, len(self))
            about = self._about(self._rows(f"{text} LIMIT {int(limit)} OFFSET {int(offset)}", values))
        return [Hit(*each, 1) for each in about.values()]

    def graph(self, image: int) -> SceneGraph:
        """The graph of an image by its number, with boxes and scores in single precision."""
        found = self.graphs([image])
        if not found:
            raise NoImageError(self.folder, f"no image {image}")
        return found[int(image)]

    def graphs(self, images: Iterable[int]) -> dict[int, SceneGraph]:
        """The graphs of some images by their numbers: one pass over the tables for all."""
        among = ", ".join(str(int(image)) for image in images)
        if not among:
            return {}

        def by_image(table: str, columns: str, order: str = "") -> dict[int, list[list[Any]]]:
            found: dict[int, list[list[Any]]] = {}
            for image, *rest in self._rows(f"SELECT image, {columns} FROM {table} WHERE image IN ({among}) {order}"):
                found.setdefault(int(image), []).append(rest)
            return found

        with self.snapshot():
            about = by_image("images", "id, file, width, height, vocabulary")
            objects = by_image("objects", "label, x1, y1, x2, y2, score", "ORDER BY image, object")
            relations = by_image("relations", "subject, object, predicate, predicate_score")
            attributes = by_image("attributes", "object, attribute, score")
            vocabularies = self._opened.manifest.vocabularies
        found: dict[int, SceneGraph] = {}
        for image, ((given, file, width, height, reference), *_) in about.items():
            rows, links = objects.get(image, []), relations.get(image, [])
            try:
                found[image] = SceneGraph(
                    np.array([row[1:5] for row in rows], dtype=np.float64).reshape(-1, 4),
                    [row[0] for row in rows],
                    Vocabulary.from_dict(vocabularies.get(reference)),
                    [row[:3] for row in links],
                    scores=np.array([row[5] for row in rows], dtype=np.float32),
                    relation_scores=np.array([row[3] for row in links], dtype=np.float32),
                    attributes=[
                        [(name, score) for k, name, score in attributes.get(image, ()) if k == i]
                        for i in range(len(rows))
                    ],
                    image_id=None if given is None else parse_json(given),
                    file=file,
                    width=width,
                    height=height,
                )
            except ValueError as error:
                raise DataError(self.folder, f"image {image}: {error}") from None
        return found

    def dataset(self) -> Dataset:
        """All images as a data set in memory, in the order in which they were added."""
        words, report = self.vocabulary, Report(str(self.folder))
        builder, align = Graphs(words, report), Alignment(words)
        with self.snapshot():
            numbers = [int(image) for (image,) in self._rows("SELECT image FROM images ORDER BY image")]
            for start in range(0, len(numbers), CHUNK):
                some = numbers[start : start + CHUNK]
                found = self.graphs(some)
                for image in some:
                    builder.append(align(found[image]))
            folders = ImageFolders(self._given or self._opened.manifest.photos)
            files = map(os.path.abspath, store_files(self.folder, self._opened.manifest))
        return Dataset(builder, self.folder, "store", report, folders, files=files)

    def key(self, image: int) -> str:
        """The key of an image; NoImageError for an unknown number."""
        rows = self._rows(f"SELECT key FROM images WHERE image = {int(image)}")
        if not rows:
            raise NoImageError(self.folder, f"no image {image}")
        return str(rows[0][0])

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the graphs; if they have several, one with all names."""
        with self.snapshot():
            stored = self._opened.manifest.vocabularies.values()
        with naming(self.folder / MANIFEST, ValueError):
            every = [Vocabulary.from_dict(each) for each in stored]
        if len(every) == 1:
            return every[0]
        objects = dict.fromkeys(name for each in every for name in each.objects)
        predicates = dict.fromkeys(name for each in every for name in each.predicates)
        return Vocabulary(tuple(objects), tuple(predicates))

    def number(self, key: str) -> int | None:
        """The number of an image, or None."""
        rows = self._rows("SELECT image FROM images WHERE key = ?", [key])
        return int(rows[0][0]) if rows else None

    def count(self, among: Iterable[Among] = ()) -> int:
        """The number of images `among` these."""
        where, keys = chosen(among)
        return int(self._rows(f"SELECT count(*) FROM images WHERE {where}", keys)[0][0])

    def images(
        self, limit: int = 100, offset: int = 0, among: Iterable[Among] = (), uncertain: bool = False
    ) -> list[Hit]:
        """Images in the order they were added, or the most `uncertain` first (the score is the mean entropy)."""
        where, keys = chosen(among)
        rows = self._rows(f"{listing(where, uncertain)} LIMIT {int(limit)} OFFSET {int(offset)}", keys)
        return [Hit(int(image), key, file, float(score), 0) for image, key, file, score in rows]

    def around(self, image: int) -> tuple[int, int | None, int | None]:
        """An image's position, and the numbers of the previous and the next one."""
        text = (
            "SELECT count(*) FILTER (image < $1), "
            "max(image) FILTER (image < $1) AS before, min(image) FILTER (image > $1) AS after "
            "FROM images"
        )
        place, before, after = self._rows(text, [int(image)])[0]
        return int(place), before, after

    def photo(self, hit: Hit | SceneGraph) -> Path | None:
        """The photo of an image, or None."""
        with self.snapshot():
            folders = ImageFolders(self._given or self._opened.manifest.photos)
        name = hit.key if isinstance(hit, Hit) else None if hit.image_id is None else str(hit.image_id)
        return folders.find(hit.file) or folders.find(name)

    def changed(self, photos: Mapping[int, Path | None]) -> set[int]:
        """Which of some images, given their photos, are no longer those that were indexed, by the photos' content."""
        among = ", ".join(str(int(image)) for image, photo in photos.items() if photo is not None) or "NULL"
        rows = self._rows(f"SELECT image, digest FROM photos WHERE image IN ({among})")
        return {int(image) for image, digest in rows if photo_digest(photos[int(image)]) not in (digest, NONE)}

    def _matches(
        self, query: Query, words: StoreWords, images: list[int], stop: Stop | None
    ) -> dict[int, tuple[Match, ...]]:
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
        for image, score, *numbers in self._rows(text, found.values, stop):
            at = dict(zip(found.columns, numbers, strict=True))
            objects = tuple(at.get(thing) for thing in range(len(query.things)))
            out.setdefault(int(image), []).append(Match(objects, float(score)))
        return {image: tuple(some) for image, some in out.items()}

    def _about(self, scored: Iterable[tuple[Any, ...]]) -> dict[int, tuple[int, str, str | None, float]]:
        """Image, key, file and score for rows of image and score, by image; DataError if the tables disagree."""
        scores = {int(image): float(score) for image, score in scored}
        among = ", ".join(map(str, scores)) or "NULL"
        rows = self._rows(f"SELECT image, key, file FROM images WHERE image IN ({among})")
        known = {int(image): (key, file) for image, key, file in rows}
        for image, score in scores.items():
            if image not in known or not isfinite(score):
                what = "a score that is not a number" if image in known else "relations or objects but no row in images"
                raise DataError(self.folder, f"is damaged: image {image} has {what}")
        return {image: (image, *known[image], score) for image, score in scores.items()}
