"""The defects of a whole Visual Genome file, found with a few array operations; then the images without any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.checks import MAX_COORDINATE, check_scores, is_identifier, plain_floats
from scenegpi.data.columns import NO_SPLIT, AttributeColumns, Columns
from scenegpi.data.limits import MAX_BOXES, MAX_RELATIONS, check_crowd
from scenegpi.errors import DataError, GraphError, Report
from scenegpi.vocabulary import Vocabulary, well_formed

ABSENT = ("scores", "label_dist", "relation_scores", "pair_dist")
"""What some images of a file may have and others not; `absent_<name>` (N,) says which don't."""

BOX_ROWS = ("labels", "boxes", "boxes_pixel", "scores", "label_dist", "attributes")
ROWS = (*BOX_ROWS, "predicates", "relationships", "predicate_scores")
"""Datasets with a row for each box, or for each relation."""


class CheckedFile:
    """Finds the defects of a whole file with a few array operations, then keeps the images without any."""

    def __init__(
        self,
        raw: dict[str, NDArray[Any]],
        vocabulary: Vocabulary,
        attributes: list[str],
        image_ids: list[Any],
        files: list[Any],
        sizes: NDArray[np.int64],
        report: Report,
        h5: Path,
        image_data: Path,
    ) -> None:
        self.raw, self.vocabulary, self.attributes, self.report = raw, vocabulary, attributes, report
        self.image_ids, self.files, self.sizes = image_ids, files, sizes
        self.h5, self.image_data = str(h5), str(image_data)
        self.good = np.ones(len(image_ids), dtype=bool)

    def columns(self) -> Columns:
        """The images without defects; the others are reported."""
        self._check_images()
        if not len(self.good):  # rows that belong to no image: nothing to keep
            self.raw |= {name: self.raw[name][:0] for name in ROWS if name in self.raw}
        n_boxes, n_relations = len(self.raw["labels"]), len(self.raw["predicates"])
        box_first, box_count = self._ranges("box", n_boxes)
        relation_first, relation_count = self._ranges("rel", n_relations)
        box_image = self._owners(box_first, box_count, n_boxes, "boxes")
        relation_image = self._owners(relation_first, relation_count, n_relations, "relations")
        labels = self._integers("labels")
        self._rows(box_image, "labels", (labels < 1) | (labels > len(self.vocabulary.objects)), labels, "is no label")
        if self.attributes and "attributes" in self.raw:
            self.raw["attributes"] = numbers = self._integers("attributes")
            bad = ((numbers < 0) | (numbers > len(self.attributes))).any(axis=1)
            self._rows(box_image, "attributes", bad, numbers, "has a number of no attribute")
        boxes = self._boxes(box_image)
        relations = self._relations(relation_image, box_first, box_count)
        kept = np.flatnonzero(self.good)
        self.report.skipped += len(self.good) - len(kept)
        box_rows, box_ptr = _gather(box_first[kept], box_count[kept])
        relation_rows, relation_ptr = _gather(relation_first[kept], relation_count[kept])
        pointers = {"boxes": box_ptr, "relations": relation_ptr}
        arrays = {"boxes": _taken(boxes, box_rows), "labels": (labels[box_rows] - 1).astype(np.int32)}
        arrays["relations"] = _taken(relations, relation_rows)
        for name, field, rows in (
            ("scores", "scores", box_rows),
            ("label_dist", "label_dist", box_rows),
            ("predicate_scores", "relation_scores", relation_rows),
        ):
            if name in self.raw:
                arrays[field] = _taken(self._finite(name), rows)
        if all(name in self.raw for name in ("pairs", "pair_dist", "img_to_first_pair")):
            pairs, first, count = self._pairs(box_count)
            rows, pointers["pairs"] = _gather(first[kept], count[kept])
            arrays |= {"pairs": pairs[rows].astype(np.int32), "pair_dist": _taken(self._finite("pair_dist"), rows)}
        attributes = None
        if self.attributes and "attributes" in self.raw:
            attributes = AttributeColumns(self.raw["attributes"][box_rows], self.attributes)
        absent = {name: self.raw[f"absent_{name}"][kept] != 0 for name in ABSENT if f"absent_{name}" in self.raw}
        split = self._integers("split") if "split" in self.raw else np.full(len(self.good), NO_SPLIT)
        odd = (split < NO_SPLIT) | (split > 2)
        if odd.any():
            first_odd = self.image_ids[int(np.flatnonzero(odd)[0])]
            self.report.warning(first_odd, "split", f"{int(odd.sum()):,} images are in none of 0, 1, 2", self.h5)
        splits = np.where(odd, NO_SPLIT, split)[kept].astype(np.int8)
        ids, files = ([column[i] for i in kept.tolist()] for column in (self.image_ids, self.files))
        sizes = self.sizes[kept].astype(np.int32)
        return Columns(self.vocabulary, ids, files, sizes, splits, arrays, pointers, attributes, absent)

    def _check_images(self) -> None:
        ids, files = self.image_ids, self.files
        numbers = set(map(type, ids)) <= {int} and len(set(ids)) == len(ids) and all(map(is_identifier, ids))
        plain = numbers and set(map(type, files)) <= {str} and all(map(str.isascii, files))
        seen: set[Any] = set()
        for i, image_id in enumerate(() if plain else ids):
            known = is_identifier(image_id)
            if not known or image_id in seen:
                message = "is duplicated" if known else f"expected a number or a string, found {image_id!r:.40}"
                self._bad(i, f"[{i}].image_id", message, self.image_data)
            elif not isinstance(files[i], str | None) or not well_formed(files[i] or ""):
                self._bad(i, f"[{i}].file_name", f"expected a string, found {files[i]!r:.40}", self.image_data)
            else:
                seen.add(image_id)
        for i in np.flatnonzero((self.sizes <= 0).any(axis=1)).tolist():
            self._bad(i, f"[{i}].width, height", "expected positive whole numbers", self.image_data)

    def _ranges(self, kind: str, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(N,) first row and (N,) number of rows of each image; an image without any has 0 and 0."""
        first, last = (self._integers(f"img_to_{end}_{kind}") for end in ("first", "last"))
        none = (first < 0) & (last < 0)
        bad = ~none & ((first < 0) | (last < first) | (last >= rows))
        for i in np.flatnonzero(bad).tolist():
            message = f"rows {first[i]}..{last[i]} of {rows:,} make no range"
            self._bad(i, f"img_to_first_{kind}, img_to_last_{kind}", message)
        off = none | bad
        first, count = np.where(off, 0, first), np.where(off, 0, last - first + 1)
        for i in np.flatnonzero(count > min(MAX_BOXES, MAX_RELATIONS)).tolist():
            try:
                check_crowd(*((count.item(i), 0) if kind == "box" else (0, count.item(i))))
            except GraphError as error:
                self._bad(i, *str(error).split(": ", 1))
                count[i] = 0
        return first, count

    def _owners(self, first: NDArray[Any], count: NDArray[Any], rows: int, what: str) -> NDArray[np.int64]:
        """(rows,) which image owns each row, -1 for none. Rows claimed twice cost the later image."""
        owner = np.full(rows, -1, dtype=np.int64)
        order = np.argsort(first, kind="stable")
        order = order[count[order] > 0]
        end = first[order] + count[order]
        shared = np.zeros(len(order), dtype=bool)
        shared[:-1] |= first[order[1:]] < end[:-1]  # it reaches into the next image's rows
        shared[1:] |= first[order[1:]] < np.maximum.accumulate(end)[:-1]  # or an earlier one reaches into its own
        for at in np.flatnonzero(shared).tolist():
            self._bad(int(order[at]), f"img_to_first_{what[:3]}", f"its {what} belong to another image too")
            count[order[at]] = 0
        order = order[count[order] > 0]
        index = np.repeat(first[order] - np.cumsum(count[order]) + count[order], count[order]) + np.arange(count.sum())
        owner[index] = np.repeat(order, count[order])
        orphans = int((owner < 0).sum())
        if orphans:
            self.report.warning(None, what, f"{orphans:,} rows belong to no image", self.h5)
        return owner

    def _boxes(self, image: NDArray[np.int64]) -> NDArray[np.float64]:
        """(B, 4) corners in pixels, checked."""
        name = "boxes_pixel" if "boxes_pixel" in self.raw else "boxes"
        with np.errstate(over="ignore", invalid="ignore"):
            box = self.raw.pop(name).astype(np.float64)
            finite = np.isfinite(box).all(axis=1)
            self._rows(image, name, ~finite, box, "is not finite")
            if name == "boxes":
                self._centred(image, box)
            else:
                self._rows(image, name, (box[:, 2:] < box[:, :2]).any(axis=1), box, "has x2 < x1 or y2 < y1")
                self._no_area(image, name, (box[:, 2:] == box[:, :2]).any(axis=1), box)
            near = (np.abs(box) <= MAX_COORDINATE).all(axis=1)
        self._rows(image, name, finite & ~near, box, f"is beyond {MAX_COORDINATE:,.0f} pixels")
        return box

    def _centred(self, image: NDArray[np.int64], box: NDArray[np.float64]) -> None:
        """Centres and sizes on a scale of 1024 become corners in pixels, in place: files can be large."""
        self._rows(image, "boxes", (box[:, 2:] < 0).any(axis=1), box, "has a negative width or height")
        self._no_area(image, "boxes", (box[:, 2:] == 0).any(axis=1), box)
        half = box[:, 2:] / 2
        np.add(box[:, :2], half, out=box[:, 2:])
        box[:, :2] -= half
        if len(self.sizes):
            box *= (np.where(image >= 0, self.sizes.max(axis=1)[image], 0) / float(self.raw["scale"]))[:, None]

    def _no_area(self, image: NDArray[np.int64], name: str, flat: Any, box: NDArray[np.float64]) -> None:
        self.report.warn_each(
            np.flatnonzero((image >= 0) & flat).tolist(),
            lambda row: (self.image_ids[image[row]], f"{name}[{row}]", f"{box[row].tolist()} has no area"),
            self.h5,
        )

    def _relations(self, image: NDArray[Any], box_first: NDArray[Any], box_count: NDArray[Any]) -> NDArray[np.int32]:
        ends, predicates = self._integers("relationships"), self._integers("predicates")
        outside = (predicates < 1) | (predicates > len(self.vocabulary.predicates))
        self._rows(image, "predicates", outside, predicates, "is no predicate")
        local = ends - box_first[image][:, None]
        crossing = ((local < 0) | (local >= box_count[image][:, None])).any(axis=1)
        self._rows(image, "relationships", crossing, ends, "leads to a box of another image")
        clipped = np.clip(local, -1, 2**31 - 1)
        return np.column_stack([clipped, np.clip(predicates - 1, -1, 2**31 - 1)]).astype(np.int32)

    def _pairs(self, box_count: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """All pairs, and first row and number of rows of each image."""
        pairs, pointers = self._integers("pairs"), self._integers("img_to_first_pair")
        whole = len(pointers) == len(self.good) + 1 and (np.diff(pointers) >= 0).all() and pointers[0] == 0
        if not whole or pointers[-1] != len(pairs) or len(pairs) != len(self.raw["pair_dist"]):
            raise DataError(self.h5, "img_to_first_pair: does not fit pairs and pair_dist")
        image = np.repeat(np.arange(len(self.good)), np.diff(pointers))
        if len(pairs) and ((pairs < 0) | (pairs >= box_count[image][:, None])).any():
            raise DataError(self.h5, "pairs: an index outside its image")
        return pairs, pointers[:-1], np.diff(pointers)

    def _finite(self, name: str) -> NDArray[np.floating]:
        value = self.raw[name]
        widths = {"label_dist": len(self.vocabulary.objects), "pair_dist": 1 + len(self.vocabulary.predicates)}
        if name in widths and value.shape[1] != widths[name]:
            raise DataError(self.h5, f"{name}: {value.shape[1]} columns, expected {widths[name]}")
        value = plain_floats(value)
        try:
            check_scores(value, name)
        except GraphError as error:
            raise DataError(self.h5, str(error)) from None
        return value

    def _integers(self, name: str) -> NDArray[np.int64]:
        value = self.raw[name]
        if value.dtype.kind == "f":
            with np.errstate(over="ignore", invalid="ignore"):
                value = value.astype(np.float64)
                whole = (np.abs(value) < 2**53) & (np.floor(value) == value)
            value = np.where(whole, value, -(2**40))
        elif value.dtype == np.uint64:
            value = np.minimum(value, 2**62)
        return value.astype(np.int64)

    def _rows(self, image: NDArray[np.int64], field: str, bad: Any, values: NDArray[Any], what: str) -> None:
        for row in np.flatnonzero(bad & (image >= 0)).tolist():
            value = values[row].tolist()
            self._bad(int(image[row]), f"{field}[{row}]", f"{value} {what}")

    def _bad(self, i: int, field: str, message: str, file: str | None = None) -> None:
        self.good[i] = False
        image_id = self.image_ids[i]
        self.report.error(image_id if is_identifier(image_id) else f"#{i}", field, message, file or self.h5)


def _gather(first: NDArray[np.int64], count: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of ranges one after the other, and the pointers to where each range starts."""
    pointers = np.concatenate([[0], np.cumsum(count, dtype=np.int64)])
    rows = np.repeat(first - pointers[:-1], count) + np.arange(pointers[-1])
    return rows, pointers


def _taken(array: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """These rows; the array itself, and not a copy of it, where they are all of them in order."""
    return array if np.array_equal(rows, np.arange(len(array))) else array[rows]
