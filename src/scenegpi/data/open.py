"""open_dataset: a file or folder in any common format -> Dataset."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from scenegpi.data.class_names import Names, read_names_file
from scenegpi.data.coco import (
    ANNOTATIONS,
    read_coco,
    read_coco_folder,
    read_coco_results,
    read_coco_splits,
    split_files,
)
from scenegpi.data.dataset import Dataset, Duplicates, Source
from scenegpi.data.gqa import read_gqa
from scenegpi.data.graphs import Graphs
from scenegpi.data.hand_boxes import is_by_hand, read_hand_boxes
from scenegpi.data.hoi import kind_of, read_hoi
from scenegpi.data.images import ImageFolders
from scenegpi.data.jsonl import JsonLines
from scenegpi.data.label_studio import read_label_studio
from scenegpi.data.open_images import read_open_images
from scenegpi.data.parquet import ParquetRows
from scenegpi.data.psg import read_psg, read_sgbench
from scenegpi.data.sgb_predictions import read_sgb_predictions
from scenegpi.data.visual_genome_raw import read_visual_genome_raw
from scenegpi.data.vrd import read_vrd
from scenegpi.data.yolo import label_folders, read_yolo
from scenegpi.errors import DataError, Report
from scenegpi.files import check_file, missing, noting_files, reading
from scenegpi.vocabulary import Vocabulary

FORMATS = {
    "visual-genome": "VG-SGG.h5 with VG-SGG-dicts.json and image_data.json",
    "vrd": "annotations_train.json / annotations_test.json, objects.json, predicates.json",
    "coco": "COCO JSON, with rel_annotations or without",
    "coco-folder": "COCO train.json / val.json / test.json with rel.json",
    "coco-splits": "train/, valid/, test/ with _annotations.coco.json (SGG-Benchmark)",
    "visual-genome-raw": "scene_graphs.json, or objects.json with relationships.json, attributes.json",
    "gqa": "GQA train_sceneGraphs.json, val_sceneGraphs.json",
    "psg": "psg.json, its boxes",
    "hoi": "HICO-DET or V-COCO JSON (trainval_hico.json, test_vcoco.json), interactions as relations",
    "sgb-predictions": "custom_prediction.json with custom_data_info.json",
    "sgbench": "predictions in SGBench's format, with the psg.json that their numbers refer to",
    "label-studio": "Label Studio tasks: regions and relations",
    "open-images": "Open Images relationship CSV",
    "coco-results": "COCO results JSON, boxes only",
    "yolo": "YOLO txt files, boxes only",
    "boxes": "boxes and labels by hand: JSON, JSON lines or CSV",
    "jsonl": "scenegpi JSON lines",
    "parquet": "Parquet, one row per image",
}
READERS: dict[str, Callable[[Path, Report], Graphs]] = {
    "vrd": read_vrd,
    "coco": read_coco,
    "coco-folder": read_coco_folder,
    "coco-splits": read_coco_splits,
    "visual-genome-raw": read_visual_genome_raw,
    "gqa": read_gqa,
    "psg": read_psg,
    "hoi": read_hoi,
    "label-studio": read_label_studio,
}
"""Readers that need only the file."""
BY_SUFFIX = {".h5": "visual-genome", ".hdf5": "visual-genome", ".jsonl": "jsonl", ".ndjson": "jsonl"}
BY_SUFFIX |= {".csv": "open-images", ".txt": "yolo", ".parquet": "parquet"}
BY_NAME = {ANNOTATIONS: "coco", "psg.json": "psg", "custom_prediction.json": "sgb-predictions"}
BY_NAME |= dict.fromkeys(("scene_graphs.json", "objects.json", "relationships.json"), "visual-genome-raw")
log = logging.getLogger("scenegpi")


def open_dataset(
    path: str | Path,
    split: str | None = None,
    *,
    format: str | None = None,
    validation: int = 0,
    validation_seed: int | None = None,
    drop_empty: bool = False,
    overlap: bool = False,
    duplicates: Duplicates = "keep",
    seed: int | None = None,
    images: str | Path | None = None,
    names: str | Path | Iterable[str] | Mapping[int, str] | None = None,
    sizes: str | Path | None = None,
    vocabulary: Vocabulary | None = None,
    strict: bool = False,
    trust: bool = False,
) -> Dataset:
    """Opens a data set of any known format; raises DataError with one clear line if it can't.

    An invalid image is noted in `dataset.report`, logged and left out, unless `strict`.

    Args:
        path: a file or a folder.
        split: "train", "val" or "test"; None gives all images.
        format: one of FORMATS; None detects it from the path.
        validation: number of training images with a box and a relation that become "val" (see Dataset.split).
        validation_seed: draws them at random instead of taking the first.
        drop_empty: leave out images without a box or without a relation.
        overlap: keep only relations whose boxes overlap, and only images that have one.
        duplicates, seed: what happens to repeated relations (see Dataset.duplicates).
        images: the folder of the photos, unless it is beside the data.
        names: class names for detector output: a file, a list, or number -> name.
        sizes: JSON file of image sizes, for boxes in fractions.
        vocabulary: for JSON lines without a vocabulary.
        strict: the first defect raises DataError.
        trust: open JSON lines without reading them all; a bad line raises DataError when it is reached.
    """
    path = Path(path)
    format = format or detect_format(path)
    if format == "boxes" and vocabulary is not None:
        format = "jsonl"  # predictions of another tool, with the caller's vocabulary
    if format not in FORMATS:
        raise DataError(path, f"format {format!r}: expected one of {', '.join(FORMATS)}")
    report = Report(str(path), strict)
    folders = ImageFolders.beside(path if path.is_dir() else path.parent, images)
    with noting_files() as read:
        source = _read(path, format, report, folders, names, Path(sizes) if sizes else None, vocabulary, trust)
    if report.skipped:
        log.warning("%d images left out, the first because of %s", report.skipped, report.first_error)
    dataset = Dataset(source, path, format, report, folders, files=read)
    if split is not None:
        dataset = dataset.split(split, validation, validation_seed)
    elif validation:
        dataset = dataset.with_validation(validation, validation_seed)
    if overlap:
        dataset = dataset.only_overlapping()
    if drop_empty:
        dataset = dataset.drop_empty()
    return dataset.duplicates(duplicates, seed)


def detect_format(path: Path) -> str:
    """The format of a file or folder by its name and first bytes; DataError if it is unknown."""
    with reading(path):
        if not path.exists():
            raise missing(path)
        if path.is_dir():
            return _folder_format(path)
        suffix = path.suffix.lower()
        if suffix in (".json", ".jsonl", ".ndjson", ".csv"):
            check_file(path)
            with path.open("rb") as handle:
                head = handle.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
            if suffix == ".json":
                return _json_format(path, head)
            if is_by_hand(head, suffix):
                return "boxes"
        if suffix in BY_SUFFIX:
            return BY_SUFFIX[suffix]
    raise DataError(path, f"unknown kind of file; give its format, one of: {', '.join(FORMATS)}")


def _json_format(path: Path, head: bytes) -> str:
    """The format of a JSON file by its name, else by its first bytes: public data sets first."""

    def holds(*keys: str) -> bool:
        return any(f'"{key}"'.encode() in head for key in keys)

    if path.name in BY_NAME:
        return BY_NAME[path.name]
    if head[:1] == b"[":
        rules = {
            "hoi": holds("hoi_annotation") or (kind_of(path) is not None and holds("file_name")),
            "visual-genome-raw": holds("image_id") and holds("relationships", "objects"),
            "label-studio": holds("data") and not holds("image_id"),
            "boxes": is_by_hand(head, ".json"),
            "coco-results": True,
        }
    else:
        rules = {
            "sgbench": holds("version") and holds("images") and holds("bboxes", "annotation"),
            "gqa": "sceneGraphs" in path.name,
            "psg": holds("segments_info"),
            "boxes": is_by_hand(head, ".json"),
            "jsonl": holds("scenegpi") and not holds("categories"),
            "coco": True,
        }
    return next(format for format, fits in rules.items() if fits)


def _folder_format(path: Path) -> str:
    names = {entry.name for entry in path.iterdir()}
    rules = {
        "visual-genome": any(name.endswith((".h5", ".hdf5")) for name in names),
        "vrd": "objects.json" in names and any(name.startswith("annotations_") for name in names),
        "visual-genome-raw": bool({"scene_graphs.json", "relationships.json"} & names),
        "gqa": any("sceneGraphs" in name for name in names),
        "psg": "psg.json" in names,
        "sgb-predictions": "custom_prediction.json" in names,
        "coco-splits": bool(split_files(path)),
        "coco-folder": "rel.json" in names,
        "parquet": any(name.endswith(".parquet") for name in names),
        "yolo": bool(label_folders(path)),
    }
    found = next((format for format, fits in rules.items() if fits), None)
    if found == "psg":
        raise DataError(path, "give the file itself: psg.json")
    if found is None:
        known = "VG-SGG.h5, scene_graphs.json, VRD, COCO, Parquet, YOLO txt"
        raise DataError(path, f"the folder contains no known data set ({known})")
    return found


def _read(
    path: Path,
    format: str,
    report: Report,
    images: ImageFolders,
    names: str | Path | Iterable[str] | Mapping[int, str] | None,
    sizes: Path | None,
    vocabulary: Vocabulary | None,
    trust: bool,
) -> Source:
    if format in READERS:
        return READERS[format](path, report)
    if format == "visual-genome":
        from scenegpi.data.visual_genome import read_visual_genome

        return read_visual_genome(path, report)
    if format == "sgb-predictions":
        return read_sgb_predictions(path, report, images)
    if format == "sgbench":
        return read_sgbench(path, report, vocabulary)
    if format == "open-images":
        return read_open_images(path, report, images, sizes)
    if format == "coco-results":
        return read_coco_results(path, report, _names(names))
    if format == "yolo":
        return read_yolo(path, report, images, _names(names), sizes)
    if format == "boxes":
        return read_hand_boxes(path, report, _names(names))
    if format == "parquet":
        return ParquetRows(path, report, vocabulary)
    return JsonLines(path, report, vocabulary, trust)


def _names(names: str | Path | Iterable[str] | Mapping[int, str] | None) -> Names | None:
    if names is None or isinstance(names, Mapping):
        return names
    if isinstance(names, str | Path):
        return read_names_file(Path(names))
    return dict(enumerate(names))


def validate(path: str | Path, **options: Any) -> Report:
    """Reads all of a data set and returns the report of its defects; DataError if it can't be read at all.

    `options` are those of `open_dataset`.
    """
    dataset = open_dataset(path, **options)
    if not len(dataset.source) and not dataset.report.errors:
        raise DataError(path, "contains no images")
    return dataset.report


def sample_path() -> Path:
    """Three hand-made scenes (boxes, labels, relations; no photos) as JSON lines."""
    return Path(str(files("scenegpi.data") / "sample.jsonl"))
