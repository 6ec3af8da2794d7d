"""What `scenegpi predict` writes: predictions.jsonl, appended so that nothing is lost; pictures and exports.

A line is a graph in the project's JSON form (docs/formats.md), with two keys more: `source`, what the image was given
as, and `name`, how its files are called. A batch is one write to the end of the file, forced to disk. A line that a
crash or a full disk tore is cut off when the run goes on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from scenegpi.data import DataError, Dataset, open_dataset
from scenegpi.data.export import EXPORTS, to_ntriples, write_export
from scenegpi.data.write import write_coco
from scenegpi.errors import GraphError
from scenegpi.files import parse_json, read_object, whole_file, writing
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import to_dict
from scenegpi.vocabulary import Vocabulary

LINES, RUN, SKIPPED = "predictions.jsonl", "run.json", "skipped.txt"
PICTURES = ("png", "svg")
WHOLE = {"coco": "predictions.coco.json", "rdf": "predictions.nt"}
FORMATS = (*PICTURES, *(name for name in EXPORTS if name not in WHOLE), *WHOLE)


class PredictionLog:
    """The lines of a run, and which images they hold.

    Args:
        folder: where everything goes; made if it is not there.
        settings: what decides the answers (model, options); a run that goes on must have the same.
        resume: go on with what is there.
        force: replace what is there.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], resume: bool = False, force: bool = False) -> None:
        self.folder, self.path = folder, folder / LINES
        self.done: set[str] = set()
        self._written: set[str] = set()
        with writing(folder):
            if folder.exists() and not folder.is_dir():
                raise DataError(folder, "is a file, expected a folder to write")
            folder.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and not (resume or force):
            raise DataError(self.path, "exists already (--resume goes on with it, --force replaces it)")
        if self.path.exists() and resume and not force:
            self._check_settings(settings)
            self._recover()
        else:
            self.path.unlink(missing_ok=True)
            with whole_file(self.folder / RUN) as part:
                part.write_text(json.dumps(settings, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def append(self, rows: Iterable[tuple[str, str, SceneGraph]]) -> None:
        """Source, name and graph of some images: all of them are in the file, or the next run does them again."""
        lines = []
        for source, name, graph in rows:
            reference = graph.vocabulary.reference
            data = to_dict(graph, vocabulary=reference not in self._written)
            self._written.add(reference)
            self.done.add(source)
            data |= {"source": source, "name": name}
            lines.append(json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n")
        if lines:
            with writing(self.path), self.path.open("ab", buffering=0) as handle:
                left = memoryview("".join(lines).encode(errors="replace"))
                while left:
                    left = left[handle.write(left) :]
                os.fsync(handle.fileno())

    def _check_settings(self, settings: dict[str, Any]) -> None:
        file = self.folder / RUN
        before = read_object(file) if file.exists() else {}
        for key, value in settings.items():
            if before.get(key) != value:
                was = json.dumps(before.get(key))
                raise DataError(
                    file, f"{key} was {was:.80}, is {json.dumps(value):.80} now: go on as before, or use --force"
                )

    def _recover(self) -> None:
        """Notes what is done; cuts off the file where a line is torn."""
        end = 0
        with writing(self.path), self.path.open("rb+") as handle:
            for line in handle:
                try:
                    data = parse_json(line) if line.endswith(b"\n") else None
                except GraphError:
                    data = None
                if not isinstance(data, dict) or not isinstance(data.get("source"), str):
                    break
                vocabulary = data.get("vocabulary")
                if isinstance(vocabulary, dict):
                    self._written.add(Vocabulary.from_dict(vocabulary).reference)
                self.done.add(data["source"])
                end += len(line)
            handle.truncate(end)


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
    """COCO's tools want ids of images: where none has one, their place is it."""
    nameless = all(graph.image_id is None for graph in dataset)
    for i, graph in enumerate(dataset, 1):
        yield graph.replace(image_id=i) if nameless else graph
