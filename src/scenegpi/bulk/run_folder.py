"""The folder of a run: its lock, its settings, the manifest of what we wrote, and the journal of its predictions.

A line of predictions.jsonl is a graph in the project's JSON form with more keys (docs/formats.md, "Predictions"). A
batch is one write to the end of the file, forced to disk. An image that is predicted again, because its photo or its
boxes changed, gets a new line; the old one is removed when the run ends, or by the next run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from scenegpi.bulk.digests import settings_digest
from scenegpi.bulk.image_files import FORMATS, WHOLE, file_names, write_whole
from scenegpi.bulk.journal import Journal
from scenegpi.bulk.manifest import Manifest
from scenegpi.bulk.run_inputs import Names
from scenegpi.errors import DataError
from scenegpi.files import MANIFEST, read_object, tidy, whole_file, write_json, writing
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import from_dict, to_dict
from scenegpi.locks import folder_lock
from scenegpi.vocabulary import Vocabulary

LINES, RUN, SKIPPED = "predictions.jsonl", "run.json", "skipped.txt"
FRAME, SHEET, CLIP = ", frame ", ".frames", ".clip"
"""For a video: the text before a frame's number, and the suffixes of the names of its sheet and clip."""
OURS = "scenegpi"
"""A key that each of our run.json files has."""


class Row(NamedTuple):
    """A predicted image.

    Args:
        source: what identifies it in the run: the absolute path of the photo that was given, or the id of its boxes.
        name: the name of its files, without suffix.
        graph: the prediction.
        digest: of everything that it was predicted from (see `bulk.digests`).
        photo: the path of its photo.
        more: keys that only lines of a video have.
        things: in a video, the thing number of each object.
    """

    source: str
    name: str
    graph: SceneGraph
    digest: str
    photo: Path | None = None
    more: dict[str, Any] | None = None
    things: Sequence[int] = ()


class Done(NamedTuple):
    """An image that was predicted before; `line` is the number of its newest line."""

    name: str
    digest: str
    line: int


def usable_folder(out: Path) -> Path:
    """The same folder; DataError if it can't be written: a file, a link to itself, or in a folder that was deleted."""
    try:
        with writing(out):
            out.resolve()
            if out.exists() and not out.is_dir():
                raise DataError(out, "is a file, expected a folder to write")
    except RuntimeError as error:  # a link to itself, before Python 3.13
        raise DataError(out, f"cannot be written ({error})") from None
    return out


def choose_folder(folder: Path, settings: dict[str, Any], resume: bool, force: bool) -> Path:
    """Where a run is written: `folder`, if it is new or holds a run with these settings, which is continued.

    A run with other settings is kept: this one goes to the next free `folder-2`, `folder-3`, ..., unless `resume`
    insists on the folder, or `force` replaces what is in it.
    """
    if resume or force:
        return folder
    free, k = folder, 1
    while _holds_run(free) and _difference(free, settings) is not None:
        k += 1
        free = folder.with_name(f"{folder.name}-{k}")
    return free


class PredictionLog:
    """The lines of a run, and which images they hold. A context manager: the folder is locked while it is open.

    Args:
        folder: where everything is written; created if it does not exist. A run in it is continued.
        settings: everything that affects answers (model, weights, options); a run that is continued must have the same.
        force: replace the run in the folder; overwrite other programs' files that are in the way.
        inputs: files that are read, and so never written.
    """

    def __init__(
        self, folder: Path, settings: dict[str, Any], force: bool = False, inputs: Collection[Path] = ()
    ) -> None:
        self.folder, self.path, self.settings, self.force = folder, folder / LINES, settings, force
        self.settings_digest = settings_digest(settings)
        self.done: dict[str, Done] = {}
        self._inputs = inputs
        self._vocabularies: dict[str, Vocabulary] = {}
        self._lines = 0
        self._open = ExitStack()

    def __enter__(self) -> PredictionLog:
        with writing(self.folder):
            usable_folder(self.folder).mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            stack.enter_context(folder_lock(self.folder))
            continued = not self.force and _holds_run(self.folder)
            changed = _difference(self.folder, self.settings) if continued else None
            if changed is not None:
                raise DataError(self.folder / RUN, f"{changed}: continue with the same settings, or use --force")
            self.manifest = stack.enter_context(Manifest(self.folder, self._inputs, self.force))
            self.manifest.about.add(RUN)
            tidy(self.folder, below=False)  # subfolders belong to other runs, or to shards (see `ray_shards`)
            if not continued:
                self.manifest.remove()
            self.manifest.check([SKIPPED])
            self.manifest.claim([RUN, LINES])
            if not continued:
                with whole_file(self.path):
                    pass  # lines of another run are dropped
                write_json(self.folder / RUN, self.settings)
            self._journal = stack.enter_context(Journal(self.path))
            self._recover()
            self._open = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        try:
            tidy(self.folder, below=False)  # stopped workers leave half-written files
            if kind is None and self._lines > len(self.done):
                self.rewrite()
            if self.path.exists() and not self.path.stat().st_size:
                self.path.unlink()  # the lines are in shards, or nothing was predicted
        finally:
            self._open.__exit__(kind, *error)

    def append(self, rows: Iterable[Row]) -> None:
        """Adds images: all of them are in the file, or the next run predicts them again."""
        new = list(rows)
        known = set(self._vocabularies)
        self._journal.append(prediction_lines(new, known))
        for row in new:
            self._vocabularies[row.graph.vocabulary.reference] = row.graph.vocabulary
            self._lines += 1
            self.done[row.source] = Done(row.name, row.digest, self._lines)

    def names(self) -> Names:
        """The names of this run's images; those of a video's sheet and clip are taken, too."""
        before = {source: done.name for source, done in self.done.items()}
        videos = {name for source, name in before.items() if FRAME in source}
        return Names(before, (f"{name}{end}" for name in videos for end in (SHEET, CLIP)))

    def forget(self, source: str) -> None:
        """Removes an image and its files from the run."""
        self.remove_files(source)
        self.done.pop(source, None)

    def remove_files(self, source: str) -> None:
        """Deletes the files of an image's earlier answer, which is out of date."""
        before = self.done.get(source)
        if before is not None:
            for name in self.manifest.names & set(file_names(before.name, FORMATS).values()):
                (self.folder / name).unlink(missing_ok=True)

    def predicted(self, sources: Collection[str]) -> Iterator[tuple[dict[str, Any], SceneGraph]]:
        """Line and graph of some images, in the order of their lines."""
        for number, row in self.rows() if sources else ():
            if row["source"] in sources:
                yield row, self._graph(number, row)

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Number and content of the newest line of each image."""
        for number, row in self._journal.rows():
            done = self.done.get(row["source"])
            if done is not None and done.line == number:
                yield number, row

    def rewrite(self, changed: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda row: row) -> None:
        """Writes the newest line of each image, whole or not at all; `changed` gives the row to write, or None."""
        done: dict[str, Done] = {}
        written: set[str] = set()

        def rows() -> Iterator[dict[str, Any]]:
            for number, row in self.rows():
                before, vocabulary = self.done[row["source"]], self._vocabulary(number, row)
                new = changed(row | {"vocabulary": vocabulary.to_dict()})
                if new is not None:
                    if vocabulary.reference in written:
                        new["vocabulary"] = vocabulary.reference
                    written.add(vocabulary.reference)
                    done[row["source"]] = before._replace(line=len(done) + 1)
                    yield new

        self._journal.replace(rows())
        self.done, self._lines = done, len(done)
        self._vocabularies = {key: self._vocabularies[key] for key in written}

    def write_whole(self, formats: Collection[str] = ()) -> list[Path]:
        """Writes the files that hold all images (see `image_files.write_whole`), claimed first.

        Those that an earlier run wrote are written again, as they would be out of date.
        """
        there = [name for name in WHOLE.values() if name in self.manifest.names and (self.folder / name).is_file()]
        wanted = [kind for kind, name in WHOLE.items() if kind in formats or name in there]
        self.manifest.claim(WHOLE[kind] for kind in wanted)
        if self._lines > len(self.done):
            self.rewrite()
        if self.done:
            return write_whole(self.path, wanted)
        for name in there:
            (self.folder / name).unlink()
        return []

    def write_skipped(self, problems: Iterable[str]) -> None:
        """Lists what was skipped, or removes the list of an earlier run."""
        lines = [f"{line}\n" for line in problems]
        if not lines:
            if SKIPPED in self.manifest.names:
                (self.folder / SKIPPED).unlink(missing_ok=True)
            return
        self.manifest.claim([SKIPPED])
        with whole_file(self.folder / SKIPPED) as part:
            part.write_text("".join(lines), encoding="utf-8", errors="backslashreplace")

    def _recover(self) -> None:
        """Reads from the journal what is done."""
        for number, row in self._journal.rows():
            source, name, digest = (row.get(key) for key in ("source", "name", "digest"))
            if not (isinstance(source, str) and isinstance(name, str) and isinstance(digest, str)):
                raise self._journal.damage(number, "source, name and digest: expected strings")
            self._vocabulary(number, row)
            self.done[source] = Done(name, digest, number)
            self._lines = number

    def _vocabulary(self, number: int, row: dict[str, Any]) -> Vocabulary:
        given = row.get("vocabulary")
        try:
            if isinstance(given, dict):
                found = Vocabulary.from_dict(given)
                return self._vocabularies.setdefault(found.reference, found)
            return self._vocabularies[given]  # type: ignore[index]
        except (ValueError, KeyError, TypeError) as error:
            raise self._journal.damage(number, f"vocabulary: {error}") from None

    def _graph(self, number: int, row: dict[str, Any]) -> SceneGraph:
        try:
            return from_dict(row, self._vocabulary(number, row))
        except ValueError as error:
            raise self._journal.damage(number, str(error)) from None


def prediction_lines(rows: Iterable[Row], written: set[str]) -> Iterator[dict[str, Any]]:
    """The line of each image; a vocabulary is written once, added to `written`, and then referred to."""
    for row in rows:
        reference = row.graph.vocabulary.reference
        more: dict[str, Any] = {"source": row.source, "name": row.name, "digest": row.digest}
        if row.photo is not None:
            more["photo"] = os.path.abspath(row.photo)
        data = to_dict(row.graph, reference not in written, **more, **(row.more or {}))
        for each, number in zip(data["objects"], row.things, strict=False):
            each["thing"] = number
        yield data
        written.add(reference)


def _holds_run(folder: Path) -> bool:
    """Whether the folder holds one of our runs, not another program's run.json, or a link."""
    if not (folder / RUN).is_file() or (folder / RUN).is_symlink():
        return False
    try:
        return OURS in read_object(folder / RUN)
    except DataError:
        if (folder / MANIFEST).exists():
            raise
        return False


def _difference(folder: Path, settings: dict[str, Any]) -> str | None:
    """The first setting that differs from the run in a folder, in one line; None if all are the same."""
    before = read_object(folder / RUN)
    if not (folder / MANIFEST).exists():
        return "this run was made by an older version"
    for key in settings | before:
        then, now = before.get(key), settings.get(key)
        if then != now:
            return f"{key} was {json.dumps(then):.80} and is now {json.dumps(now):.80}"
    return None
