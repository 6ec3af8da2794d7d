"""Any format that is read -> any format that is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from scenegpi.data.dataset import Dataset
from scenegpi.data.jsonl import write_jsonl
from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph

WRITERS = {
    "jsonl": "scenegpi JSON lines (a file)",
    "visual-genome": "VG-SGG.h5 with VG-SGG-dicts.json and image_data.json (a folder)",
    "coco": "COCO JSON with rel_annotations (a file)",
    "label-studio": "Label Studio's JSON, boxes and relations (a file)",
    "cypher": "CSV files and load.cypher for a graph database (a folder)",
}
Watch = Callable[[Iterable[SceneGraph]], Iterable[SceneGraph]]


def convert(
    dataset: Dataset, target: str | Path, to: str | None = None, overwrite: bool = False, watch: Watch = iter
) -> int:
    """Writes a data set to `target` and returns the number of images; whole or not at all.

    `to` is one of WRITERS, by default told from the target's name: .jsonl, .json (COCO), or a folder (Visual Genome).
    `watch` wraps the graphs on their way, for a progress bar.
    """
    target = Path(target)
    to = to or {".jsonl": "jsonl", ".json": "coco", "": "visual-genome"}.get(target.suffix.lower())
    if to not in WRITERS:
        raise DataError(target, f"which format? Expected one of {', '.join(WRITERS)}")
    if not len(dataset):
        raise DataError(dataset.path, "there is no image to write")
    graphs = watch(dataset)
    splits = dataset.split_codes().tolist()
    if to == "jsonl":
        return write_jsonl(target, graphs, splits, overwrite)
    if to == "cypher":
        from scenegpi.data.cypher import write_cypher

        return write_cypher(target, graphs, overwrite)
    if to == "label-studio":
        from scenegpi.data.label_studio import write_label_studio

        return write_label_studio(target, graphs, overwrite)
    from scenegpi.data.write import write_coco, write_visual_genome

    writer = write_coco if to == "coco" else write_visual_genome
    return writer(target, graphs, splits, dataset.vocabulary, overwrite)
