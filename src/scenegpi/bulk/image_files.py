"""The pictures and exports of a run: per image, and of all images in one file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from scenegpi.data import Dataset, open_dataset
from scenegpi.data.export import EXPORTS, to_ntriples, write_export
from scenegpi.data.export.data_sets import write_coco
from scenegpi.files import whole_file
from scenegpi.graph import SceneGraph

PICTURES = ("png", "svg")
WHOLE = {"coco": "predictions.coco.json", "rdf": "predictions.nt"}
FORMATS = (*PICTURES, *(name for name in EXPORTS if name not in WHOLE), *WHOLE)


def file_names(name: str, formats: Iterable[str]) -> dict[str, str]:
    """The files of one image, by format."""
    return {kind: f"{name}{suffix(kind)}" for kind in formats if kind not in WHOLE}


def suffix(kind: str) -> str:
    """The suffix of one image's file in this format."""
    return f".{kind}" if kind in PICTURES else EXPORTS[kind].suffix


def write_image(graph: SceneGraph, folder: Path, name: str, formats: Iterable[str], photo: Path | bytes | None) -> None:
    """Writes the pictures and files of one image in these formats, each whole or not at all."""
    for kind, file in file_names(name, formats).items():
        if kind in PICTURES:
            graph.draw(folder / file, photo=photo)
        else:
            write_export(graph, folder / file, kind)


def write_whole(lines: Path, formats: Iterable[str]) -> list[Path]:
    """Writes the files that hold all images, next to the lines that they are made from; whole or not at all."""
    wanted = [kind for kind in formats if kind in WHOLE]
    if not wanted:
        return []
    dataset = open_dataset(lines, trust=True)
    written = []
    for kind in wanted:
        target = lines.parent / WHOLE[kind]
        if kind == "coco":
            write_coco(target, _numbered(dataset), iter(lambda: -1, None), dataset.vocabulary, overwrite=True)
        else:
            with whole_file(target) as part, part.open("w", encoding="utf-8") as handle:
                for i, graph in enumerate(dataset):
                    handle.write(to_ntriples(graph, f"image-{i}"))
        written.append(target)
    return written


def _numbered(dataset: Dataset) -> Iterator[SceneGraph]:
    """COCO's tools need image ids: if no image has an id, the images are numbered."""
    nameless = all(graph.image_id is None for graph in dataset)
    for i, graph in enumerate(dataset, 1):
        yield graph.replace(image_id=i) if nameless else graph
