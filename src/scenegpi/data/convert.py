"""Any format that is read -> any format that is written."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from scenegpi.data.dataset import Dataset
from scenegpi.data.export.data_sets import write_coco, write_label_studio, write_sgbench, write_visual_genome
from scenegpi.data.export.rag import write_graphrag, write_lightrag
from scenegpi.data.jsonl import write_jsonl
from scenegpi.errors import DataError
from scenegpi.files import not_an_input
from scenegpi.graph import SceneGraph

WRITERS = {
    "jsonl": "scenegpi JSON lines (a file)",
    "visual-genome": "VG-SGG.h5 with VG-SGG-dicts.json and image_data.json (a folder)",
    "coco": "COCO JSON with rel_annotations (a file)",
    "label-studio": "Label Studio's JSON, boxes and relations (a file)",
    "sgbench": "SGBench's JSON, for predictions (a file)",
    "lightrag": "JSON for LightRAG's insert_custom_kg (a file)",
    "graphrag": "Parquet tables of a GraphRAG index (a folder)",
}
CANNOT_HOLD = {
    "visual-genome": ("scores", "relation_scores", "label_dist", "pair_dist", "attributes"),
    "coco": ("label_dist", "pair_dist"),
    "label-studio": ("label_dist", "relation_scores", "pair_dist", "attribute_scores"),
    "sgbench": ("file", "scores", "relation_scores", "label_dist", "pair_dist", "attributes"),
    "lightrag": ("boxes", "label_dist", "pair_dist", "relations of an object to itself"),
    "graphrag": ("boxes", "label_dist", "pair_dist", "relations of an object to itself"),
}
"""Fields of the record that a target cannot hold; `convert` names those that are lost."""
log = logging.getLogger("scenegpi")
Watch = Callable[[Iterable[SceneGraph]], Iterable[SceneGraph]]


def convert(
    dataset: Dataset,
    target: str | Path,
    to: str | None = None,
    overwrite: bool = False,
    watch: Watch = iter,
    prefix: str = "",
    warn: Callable[[str], object] = log.warning,
) -> int:
    """Writes a data set to `target` and returns the number of images; whole or not at all.

    `to` is one of WRITERS; by default the target's name decides: .jsonl, .json (COCO), or a folder (Visual Genome).
    `watch` wraps the iterator of graphs, for a progress bar; `prefix` goes before Label Studio's picture names; `warn`
    is told in one line what the target cannot hold.
    """
    target = Path(target)
    to = to or {".jsonl": "jsonl", ".json": "coco", "": "visual-genome"}.get(target.suffix.lower())
    if to not in WRITERS:
        raise DataError(target, f"the name does not tell the format; expected one of {', '.join(WRITERS)}")
    if not len(dataset):
        raise DataError(dataset.path, "no images to write")
    if target.is_dir():
        folder = dataset.path if dataset.path.is_dir() else dataset.path.parent
        not_an_input(target, folder, *{os.path.dirname(file) for file in dataset.files})
    else:
        not_an_input(target, dataset.path, *dataset.files)
    lost: Counter[str] = Counter()
    count = _write(dataset, _noted(watch(dataset), CANNOT_HOLD.get(to, ()), lost), target, to, overwrite, prefix)
    if lost:
        fields = ", ".join(f"{field} (of {images:,} images)" for field, images in lost.items())
        warn(f"{target}: the {to} layout cannot hold {fields}: left out")
    return count


def _noted(graphs: Iterable[SceneGraph], fields: Iterable[str], lost: Counter[str]) -> Iterator[SceneGraph]:
    """The graphs unchanged; counts those with a field that the target can't hold."""
    for graph in graphs:
        lost.update(field for field in fields if _has(graph, field))
        yield graph


def _has(graph: SceneGraph, field: str) -> bool:
    if field == "attribute_scores":
        return any(score != 1 for row in graph.attributes or () for _, score in row)
    if field == "relations of an object to itself":
        return bool((graph.relations[:, 0] == graph.relations[:, 1]).any())
    return getattr(graph, field) is not None


def _write(dataset: Dataset, graphs: Iterable[SceneGraph], target: Path, to: str, overwrite: bool, prefix: str) -> int:
    splits, words = dataset.split_codes().tolist(), dataset.vocabulary
    writers: dict[str, Callable[[], int]] = {
        "jsonl": lambda: write_jsonl(target, graphs, splits, overwrite),
        "visual-genome": lambda: write_visual_genome(target, graphs, splits, words, overwrite),
        "coco": lambda: write_coco(target, graphs, splits, words, overwrite),
        "label-studio": lambda: write_label_studio(target, graphs, splits, words, overwrite, prefix),
        "sgbench": lambda: write_sgbench(target, graphs, words, overwrite),
        "lightrag": lambda: write_lightrag(target, graphs, overwrite),
        "graphrag": lambda: write_graphrag(target, graphs, overwrite),
    }
    return writers[to]()
