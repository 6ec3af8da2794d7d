"""What `scenegpi predict` writes: predictions.jsonl, appended, so that nothing is lost; pictures and exports.

A line is a graph in the project's JSON form (docs/formats.md), with two more keys: `source`, what the image was given
as, and `name`, the name of its files. A batch is one write to the end of the file, forced to disk. A line that a
crash or a full disk tore is cut off when the run is continued.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from scenegpi.data import DataError, Dataset, open_dataset
from scenegpi.data.export import EXPORTS, to_ntriples, write_export
from scenegpi.data.write import write_coco
from scenegpi.errors import GraphError
from scenegpi.files import no_link, parse_json, read_object, tidy, whole_file, write_json, writing
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import to_dict
from scenegpi.locks import folder_lock
from scenegpi.vocabulary import Vocabulary

LINES, RUN, SKIPPED, SHARDS = "predictions.jsonl", "run.json", "skipped.txt", "shards"
PICTURES = ("png", "svg")
WHOLE = {"coco": "predictions.coco.json", "rdf": "predictions.nt"}
FORMATS = (*PICTURES, *(name for name in EXPORTS if name not in WHOLE), *WHOLE)


def choose_folder(folder: Path, settings: dict[str, Any], resume: bool, force: bool) -> Path:
    """Where a run goes: `folder` where it is new, or holds a run of these settings, which is continued.

    A run of other settings is not touched: this one goes to the next free `folder-2`, `folder-3`, ..., unless `resume`
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
    """The lines of a run, and which images they hold. A context: the folder is locked while it is open.

    Args:
        folder: where everything goes; made if it is not there. A run that is there is continued.
        settings: what decides the answers (model, options); a run that is continued must have the same.
        force: replace what is there.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], force: bool = False) -> None:
        self.folder, self.path, self.settings, self.force = folder, folder / LINES, settings, force
        self.done: set[str] = set()
        self._written: set[str] = set()
        self._lock = ExitStack()

    def __enter__(self) -> PredictionLog:
        with writing(self.folder):
            if self.folder.exists() and not self.folder.is_dir():
                raise DataError(self.folder, "is a file, expected a folder to write")
            self.folder.mkdir(parents=True, exist_ok=True)
        self._lock.enter_context(folder_lock(self.folder))
        try:
            tidy(self.folder)
            if _holds_run(self.folder) and not self.force:
                changed = _difference(self.folder, self.settings)
                if changed is not None:
                    raise DataError(self.folder / RUN, f"{changed}: continue with the same settings, or use --force")
                self._recover()
            else:
                self.path.unlink(missing_ok=True)
                shutil.rmtree(self.folder / SHARDS, ignore_errors=True)
                write_json(self.folder / RUN, self.settings)
        except BaseException:
            self._lock.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        tidy(self.folder)  # workers that were stopped leave half-written files
        self._lock.close()

    def append(self, rows: Iterable[tuple[str, str, SceneGraph]]) -> None:
        """Source, name and graph of some images: all of them are in the file, or the next run does them again."""
        done = list(rows)
        lines = "".join(prediction_lines(done, self._written))
        self.done.update(source for source, _, _ in done)
        if lines:
            with writing(self.path), open(self.path, "ab", buffering=0, opener=no_link) as handle:
                left = memoryview(lines.encode(errors="replace"))
                while left:
                    left = left[handle.write(left) :]
                os.fsync(handle.fileno())

    def _recover(self) -> None:
        """Notes what is done; cuts off the file where a line is torn."""
        if not self.path.exists():
            return
        end = 0
        with writing(self.path), open(self.path, "rb+", opener=no_link) as handle:
            for line in handle:
                try:
                    data = parse_json(line) if line.endswith(b"\n") else None
                except GraphError:
                    data = None
                if not isinstance(data, dict) or not isinstance(data.get("source"), str):
                    break
                vocabulary = data.get("vocabulary")
                if isinstance(vocabulary, dict):
                    try:
                        self._written.add(Vocabulary.from_dict(vocabulary).reference)
                    except ValueError as error:
                        raise DataError(self.path, f"vocabulary: {error}; use --force to start again") from None
                self.done.add(data["source"])
                end += len(line)
            handle.truncate(end)


def prediction_lines(rows: Iterable[tuple[str, str, SceneGraph]], written: set[str]) -> Iterator[str]:
    """A line for source, name and graph of each image; vocabularies that are not yet `written` are, and are noted."""
    for source, name, graph in rows:
        reference = graph.vocabulary.reference
        data = to_dict(graph, vocabulary=reference not in written) | {"source": source, "name": name}
        written.add(reference)
        yield json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


def _holds_run(folder: Path) -> bool:
    return (folder / LINES).exists() or _has_settings(folder)


def _has_settings(folder: Path) -> bool:
    """Whether there is a run.json; a link is none of ours and will be replaced."""
    return (folder / RUN).exists() and not (folder / RUN).is_symlink()


def _difference(folder: Path, settings: dict[str, Any]) -> str | None:
    """What is not as it was in the run of a folder, in one line; None where nothing changed."""
    before = read_object(folder / RUN) if _has_settings(folder) else {}
    for key in settings | before:
        then, now = before.get(key), settings.get(key)
        if then != now:
            return f"{key} was {json.dumps(then):.80}, is {json.dumps(now):.80} now"
    return None


def write_image(graph: SceneGraph, folder: Path, name: str, formats: Iterable[str], photo: Path | None) -> None:
    """The pictures and files of one image that are wanted, each whole or not at all."""
    for kind in formats:
        if kind in PICTURES:
            graph.draw(folder / f"{name}{suffix(kind)}", photo=photo)
        elif kind not in WHOLE:
            write_export(graph, folder / f"{name}{suffix(kind)}", kind)


def suffix(kind: str) -> str:
    """How the file of one image in this format ends."""
    return f".{kind}" if kind in PICTURES else EXPORTS[kind].suffix


def write_whole(folder: Path, formats: Iterable[str]) -> list[Path]:
    """The files that hold all images, made from the lines; whole or not at all."""
    wanted = [kind for kind in formats if kind in WHOLE]
    if not wanted or not (folder / LINES).exists():
        return []
    dataset = open_dataset(folder / LINES, trust=True)
    written = []
    for kind in wanted:
        target = folder / WHOLE[kind]
        if kind == "coco":
            write_coco(target, _numbered(dataset), iter(lambda: -1, None), dataset.vocabulary, overwrite=True)
        else:
            with whole_file(target) as part, part.open("w", encoding="utf-8") as handle:
                for i, graph in enumerate(dataset):
                    handle.write(to_ntriples(graph, f"image-{i}"))
        written.append(target)
    return written


def _numbered(dataset: Dataset) -> Iterator[SceneGraph]:
    """COCO's tools need image ids: if no image has one, they are numbered."""
    nameless = all(graph.image_id is None for graph in dataset)
    for i, graph in enumerate(dataset, 1):
        yield graph.replace(image_id=i) if nameless else graph
