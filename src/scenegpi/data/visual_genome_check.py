"""The defects of a whole Visual Genome file, found with a few array operations; then the valid images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.checks import MAX_COORDINATE, is_identifier
from scenegpi.data.graphs import NO_SPLIT, Columns
from scenegpi.data.limits import MAX_BOXES, MAX_RELATIONS
from scenegpi.errors import Report
from scenegpi.vocabulary import Vocabulary, well_formed

Integers = NDArray[np.int64]


@dataclass(eq=False)
class VisualGenome:
    """What the files hold, not checked yet.

    Args:
        h5, image_data: the files, for messages.
        raw: the datasets of the h5 file by name; `scale` is 1024 or 512.
        attributes: their names.
        image_ids, files: of each image.
        sizes: (N, 2) width, height; 0 where it is not a size.
        report: where defects are noted.
    """

    h5: Path
    image_data: Path
    raw: Mapping[str, NDArray[Any]]
    vocabulary: Vocabulary
    attributes: list[str]
    image_ids: list[Any]
    files: list[Any]
    sizes: Integers
    report: Report

    def __post_init__(self) -> None:
        self.good = np.ones(len(self.image_ids), dtype=bool)

    def columns(self) -> Columns:
        """The images without defects; the others are reported."""
        self._check_images()
        first_box, box_count, box_image = self._ranges("box", len(self.raw["labels"]))
        first_relation, relation_count, relation_image = self._ranges("rel", len(self.raw["predicates"]))
        labels = self._integers("labels")
        outside = (labels < 1) | (labels > len(self.vocabulary.objects))
        self._rows(box_image, "labels", outside, labels, "is not a label")
        attributes = self._integers("attributes") if self.attributes and "attributes" in self.raw else None
        if attributes is not None:
            odd = ((attributes < 0) | (attributes > len(self.attributes))).any(axis=1)
            self._rows(box_image, "attributes", odd, attributes, "is not an attribute")
        boxes = self._boxes(box_image)
        relations = self._relations(relation_image, first_box, box_count)
        splits = self._splits()
        kept = np.flatnonzero(self.good)
        self.report.skipped += len(self.good) - len(kept)
        box_rows, box_ptr = _gather(first_box[kept], box_count[kept])
        relation_rows, relation_ptr = _gather(first_relation[kept], relation_count[kept])
        return Columns(
            self.vocabulary,
            image_ids=[self.image_ids[i] for i in kept.tolist()],
            files=[self.files[i] for i in kept.tolist()],
            sizes=self.sizes[kept].astype(np.int32),
            splits=splits[kept],
            boxes=_taken(boxes, box_rows),
            labels=(labels[box_rows] - 1).astype(np.int32),
            relations=_taken(relations, relation_rows),
            box_ptr=box_ptr,
            relation_ptr=relation_ptr,
            attributes=None if attributes is None else attributes[box_rows].astype(np.int32),
            attribute_names=self.attributes,
        )

    def _check_images(self) -> None:
        seen: set[Any] = set()
        for i, (image_id, file) in enumerate(zip(self.image_ids, self.files, strict=True)):
            known = is_identifier(image_id)
            if not known or image_id in seen:
                message = "is duplicated" if known else f"expected a number or a string, found {image_id!r:.40}"
                self._bad(i, f"[{i}].image_id", message, self.image_data)
            elif not isinstance(file, str | None) or not well_formed(file or ""):
                self._bad(i, f"[{i}].file_name", f"expected a string, found {file!r:.40}", self.image_data)
            else:
                seen.add(image_id)
        for i in np.flatnonzero((self.sizes <= 0).any(axis=1)).tolist():
            self._bad(i, f"[{i}].width, height", "expected positive whole numbers", self.image_data)

    def _ranges(self, kind: str, rows: int) -> tuple[Integers, Integers, Integers]:
        """(N,) first row and (N,) number of rows of each image, and (rows,) the image that owns each row, or -1."""
        first, last = (self._integers(f"img_to_{end}_{kind}") for end in ("first", "last"))
        none = (first < 0) & (last < 0)
        bad = ~none & ((first < 0) | (last < first) | (last >= rows))
        for i in np.flatnonzero(bad).tolist():
            message = f"rows {first[i]}..{last[i]} of {rows:,} are not a range"
            self._bad(i, f"img_to_first_{kind}, img_to_last_{kind}", message)
        first, count = np.where(none | bad, 0, first), np.where(none | bad, 0, last - first + 1)
        what, most = ("boxes", MAX_BOXES) if kind == "box" else ("relations", MAX_RELATIONS)
        for i in np.flatnonzero(count > most).tolist():
            self._bad(i, what, f"{count[i]:,} in one image, more than the {most:,} this reader accepts")
            count[i] = 0
        order = np.argsort(first, kind="stable")
        order = order[count[order] > 0]
        start, end = first[order], first[order] + count[order]
        shared = np.zeros(len(order), dtype=bool)
        shared[:-1] |= start[1:] < end[:-1]  # it reaches into the next image's rows
        shared[1:] |= start[1:] < np.maximum.accumulate(end)[:-1]  # or an earlier one reaches into its own
        for i in order[shared].tolist():
            self._bad(i, f"img_to_first_{kind}", "its rows belong to another image too")
            count[i] = 0
        owner = np.full(rows, -1, dtype=np.int64)
        owner[_gather(first, count)[0]] = np.repeat(np.arange(len(count)), count)
        if orphans := rows - int(count.sum()):
            self.report.warning(None, what, f"{orphans:,} rows belong to no image", str(self.h5))
        return first, count, owner

    def _boxes(self, image: Integers) -> NDArray[np.float64]:
        """(B, 4) corners in pixels, checked; made in place, as files can be large."""
        name = "boxes_pixel" if "boxes_pixel" in self.raw else "boxes"
        with np.errstate(over="ignore", invalid="ignore"):
            box = self.raw[name].astype(np.float64)
            finite = np.isfinite(box).all(axis=1)
            self._rows(image, name, ~finite, box, "is not finite")
            size = box[:, 2:] - box[:, :2] if name == "boxes_pixel" else box[:, 2:]
            self._rows(image, name, (size < 0).any(axis=1), box, "has a negative width or height")
            self.report.warn_each(
                np.flatnonzero((image >= 0) & (size == 0).any(axis=1)).tolist(),
                lambda row: (self.image_ids[image[row]], f"{name}[{row}]", f"{box[row].tolist()} has no area"),
                str(self.h5),
            )
            if name == "boxes":  # centre and size on a scale of 1024
                half = size / 2
                np.add(box[:, :2], half, out=box[:, 2:])
                box[:, :2] -= half
                box *= (np.where(image >= 0, self.sizes.max(axis=1)[image], 0) / float(self.raw["scale"]))[:, None]
            near = (np.abs(box) <= MAX_COORDINATE).all(axis=1)
        self._rows(image, name, finite & ~near, box, f"is beyond {MAX_COORDINATE:,.0f} pixels")
        return box

    def _relations(self, image: Integers, first_box: Integers, box_count: Integers) -> NDArray[np.int32]:
        """(R, 3) subject and object within the image, predicate."""
        ends, predicates = self._integers("relationships"), self._integers("predicates")
        outside = (predicates < 1) | (predicates > len(self.vocabulary.predicates))
        self._rows(image, "predicates", outside, predicates, "is not a predicate")
        local = ends - first_box[image][:, None]
        crossing = ((local < 0) | (local >= box_count[image][:, None])).any(axis=1)
        self._rows(image, "relationships", crossing, ends, "refers to a box of another image")
        return np.clip(np.column_stack([local, predicates - 1]), -1, 2**31 - 1).astype(np.int32)

    def _splits(self) -> NDArray[np.int8]:
        split = self._integers("split") if "split" in self.raw else np.full(len(self.good), NO_SPLIT)
        odd = (split < NO_SPLIT) | (split > 2)
        if odd.any():
            first = self.image_ids[int(odd.argmax())]
            self.report.warning(first, "split", f"{int(odd.sum()):,} images are not in split 0, 1 or 2", str(self.h5))
        return np.where(odd, NO_SPLIT, split).astype(np.int8)

    def _integers(self, name: str) -> Integers:
        """A dataset as whole numbers; any other value becomes a number that every check refuses."""
        value = self.raw[name]
        if value.dtype.kind == "f":
            with np.errstate(over="ignore", invalid="ignore"):
                value = value.astype(np.float64)
                whole = (np.abs(value) < 2**53) & (np.floor(value) == value)
            value = np.where(whole, value, -(2**40))
        elif value.dtype == np.uint64:
            value = np.minimum(value, 2**62)
        return value.astype(np.int64)

    def _rows(self, image: Integers, field: str, bad: Any, values: NDArray[Any], what: str) -> None:
        for row in np.flatnonzero(bad & (image >= 0)).tolist():
            self._bad(int(image[row]), f"{field}[{row}]", f"{values[row].tolist()} {what}")

    def _bad(self, i: int, field: str, message: str, file: Path | None = None) -> None:
        self.good[i] = False
        image_id = self.image_ids[i]
        self.report.error(image_id if is_identifier(image_id) else f"#{i}", field, message, str(file or self.h5))


def _gather(first: Integers, count: Integers) -> tuple[Integers, Integers]:
    """The rows of ranges one after the other, and the pointers to where each range starts."""
    pointers = np.concatenate([[0], np.cumsum(count, dtype=np.int64)])
    rows = np.repeat(first - pointers[:-1], count) + np.arange(pointers[-1])
    return rows, pointers


def _taken(array: NDArray[Any], rows: Integers) -> NDArray[Any]:
    """These rows; the array itself, and not a copy of it, where these are all rows in order."""
    return array if np.array_equal(rows, np.arange(len(array))) else array[rows]
