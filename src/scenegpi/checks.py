"""Values from anywhere -> checked, read-only arrays; the message of a GraphError starts with the field's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import GraphError
from scenegpi.vocabulary import Vocabulary, well_formed

MAX_COORDINATE = 1e7
"""Boxes lie within this many pixels of the origin: squares of areas then still fit single precision."""
Attributes = tuple[tuple[tuple[str, float], ...], ...]
"""Names with their scores for each box."""
MAX_SCORE = 1e9
"""Upper bound of scores and distributions: a product of three still fits single precision."""


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The array itself, read-only from now on."""
    array.flags.writeable = False
    return array


def numbers(value: Any, field: str) -> NDArray[Any]:
    """Any list, array or tensor of numbers as an array; GraphError on anything else."""
    if hasattr(value, "detach"):  # a torch tensor; NumPy has no bfloat16
        value = value.detach().cpu()
        value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    try:
        array = np.array(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise GraphError(f"{field}: not an array ({error})") from None
    if array.size and array.dtype.kind not in "biuf":
        raise GraphError(f"{field}: expected numbers, found {array.dtype}")
    return array


def _shaped(array: NDArray[Any], shape: tuple[int, ...], field: str) -> NDArray[Any]:
    if array.size == 0 and 0 in np.maximum(shape, 0):
        array = array.reshape(np.maximum(shape, 0))
    if array.ndim != len(shape) or any(want not in (-1, got) for want, got in zip(shape, array.shape, strict=True)):
        want = ", ".join("n" if s < 0 else str(s) for s in shape)
        raise GraphError(f"{field}: expected shape ({want}), found {array.shape}")
    return array


def first_row(bad: NDArray[np.bool_]) -> int | None:
    """The first row of (n, ...) that is marked as bad, or None."""
    return int(bad.reshape(len(bad), -1).any(axis=1).argmax()) if bad.any() else None


def box_array(value: Any, field: str = "boxes") -> NDArray[np.float64]:
    array = _shaped(numbers(value, field), (-1, 4), field).astype(np.float64, copy=False)
    if (row := first_row(~(np.abs(array) <= MAX_COORDINATE))) is not None:  # NaN too
        finite = bool(np.isfinite(array[row]).all())
        what = f"is beyond {MAX_COORDINATE:,.0f} pixels" if finite else "is not finite"
        raise GraphError(f"{field}[{row}]: {array[row].tolist()} {what}")
    if (row := first_row(array[:, 2:] < array[:, :2])) is not None:
        raise GraphError(f"{field}[{row}]: {array[row].tolist()} has x2 < x1 or y2 < y1")
    return frozen(array)


def integer_array(value: Any, shape: tuple[int, ...], field: str) -> NDArray[np.int32]:
    array = numbers(value, field)
    array = _shaped(array, shape, field)
    if array.size:
        if array.dtype.kind == "f" and not (np.isfinite(array).all() and (array == np.floor(array)).all()):
            raise GraphError(f"{field}: expected whole numbers")
        if array.min() < np.iinfo(np.int32).min or array.max() > np.iinfo(np.int32).max:
            raise GraphError(f"{field}: a number is too large")
    return frozen(array.astype(np.int32, copy=False))


def check_range(array: NDArray[np.int32], stop: int, field: str) -> None:
    if (row := first_row((array < 0) | (array >= stop))) is not None:
        raise GraphError(f"{field}[{row}]: {np.ravel(array[row]).tolist()} is outside 0..{stop - 1}")


def real_array(value: Any, shape: tuple[int, ...], field: str) -> NDArray[np.floating] | None:
    if value is None:
        return None
    array = _shaped(numbers(value, field), shape, field)
    if not len(array) and field != "pair_dist":
        return None  # always None if empty, so that equality and files agree
    if array.dtype != np.float32:
        array = array.astype(np.float64, copy=False)
    check_scores(array, field)
    return frozen(array)


def plain_floats(array: NDArray[Any]) -> NDArray[np.floating]:
    """Float32 and float64 as they are, without a copy; half precision as single, whole numbers as double."""
    if array.dtype in (np.float32, np.float64):
        return array
    with np.errstate(over="ignore"):
        return array.astype(np.float32 if array.dtype == np.float16 else np.float64)


def check_scores(array: NDArray[np.floating], field: str) -> None:
    """GraphError unless all numbers are finite, and none is beyond MAX_SCORE."""
    if (row := first_row(~(np.abs(array) <= MAX_SCORE))) is not None:  # NaN too
        finite = bool(np.isfinite(array[row]).all())
        raise GraphError(f"{field}[{row}]: {f'beyond {MAX_SCORE:,.0f}' if finite else 'not finite'}")


def is_identifier(value: Any) -> TypeGuard[int | str]:
    """A whole number of 64 bits, or text that can be written as UTF-8."""
    if isinstance(value, str):
        return well_formed(value)
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and -(2**63) <= int(value) < 2**63


def identifier(value: Any) -> int | str | None:
    if value is None:
        return None
    if not is_identifier(value):
        raise GraphError(f"image_id: expected a whole number or a string, found {value!r:.60}")
    return str(value) if isinstance(value, str) else int(value)


def image_side(value: Any, field: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not 0 < value < 2**31:
        raise GraphError(f"{field}: expected a positive whole number, found {value!r:.60}")
    return int(value)


def file_name(value: Any) -> str | None:
    """The image's file name, as text that can be written."""
    if value is None:
        return None
    text = str(value)
    if not well_formed(text):
        raise GraphError(f"file: {text!r:.60} can't be written as UTF-8")
    return text


def attribute_rows(value: Any, n: int) -> Attributes | None:
    """Names, or name -> score, for each box -> ((name, score), ...) for each; None where no box has any."""
    if value is None:
        return None
    rows = list(value) if isinstance(value, list | tuple) else []
    if len(rows) != n or (n and not isinstance(value, list | tuple)):
        raise GraphError(f"attributes: expected one list of names for each of {n} boxes, found {value!r:.60}")
    found = tuple(_attributes(row, f"attributes[{i}]") for i, row in enumerate(rows))
    return found if any(found) else None


def _attributes(row: Any, field: str) -> tuple[tuple[str, float], ...]:
    if isinstance(row, str) or not isinstance(row, Mapping | list | tuple):
        raise GraphError(f"{field}: expected names, or names with scores, found {row!r:.60}")
    items = row.items() if isinstance(row, Mapping) else [(each, 1) if isinstance(each, str) else each for each in row]
    found: dict[str, float] = {}
    for item in items:
        name, score = item if isinstance(item, tuple | list) and len(item) == 2 else (None, None)
        if not isinstance(name, str) or not name.strip() or not well_formed(name):
            raise GraphError(f"{field}: expected a name, found {(item if name is None else name)!r:.60}")
        if isinstance(score, bool) or not isinstance(score, int | float | np.number) or not 0 <= score <= MAX_SCORE:
            raise GraphError(f"{field}: expected a score of {name!r:.60}, found {score!r:.60}")
        found.setdefault(name, float(score))
    return tuple(found.items())


def label_numbers(labels: Any, vocabulary: Vocabulary) -> Any:
    """Object names -> their indices in the vocabulary; other values are unchanged, to be checked as numbers."""
    rows = _plain_rows(labels)
    if not any(isinstance(name, str) for name in rows):
        return labels
    index = vocabulary.object_index
    return [_place(name, index, f"labels[{i}]") for i, name in enumerate(rows)]


def relation_numbers(relations: Any, vocabulary: Vocabulary) -> Any:
    """Rows (subject, object, predicate name) -> rows of numbers; as for `label_numbers`."""
    rows = _plain_rows(relations)
    if not any(isinstance(cell, str) for row in rows if isinstance(row, list | tuple) for cell in row):
        return relations
    numbered = []
    for i, row in enumerate(rows):
        if not isinstance(row, list | tuple) or len(row) != 3:
            raise GraphError(f"relations[{i}]: expected subject, object and predicate, found {row!r:.60}")
        for field, end in zip(("subject", "object"), row, strict=False):
            if isinstance(end, str):
                raise GraphError(f"relations[{i}].{field}: expected the index of a box, found {end!r:.60}")
        numbered.append((*row[:2], _place(row[2], vocabulary.predicate_index, f"relations[{i}].predicate")))
    return numbered


def _plain_rows(values: Any) -> list[Any] | tuple[Any, ...]:
    """The rows of a value that may hold names (a list, or an array of text or objects); none of other values."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "OTU":
        values = values.tolist()
    return values if isinstance(values, list | tuple) else ()


def _place(name: Any, index: Mapping[str, int], field: str) -> Any:
    if not isinstance(name, str):
        return name
    if name not in index:
        from difflib import get_close_matches  # imported only on an error, as every command pays for its imports

        close = get_close_matches(name[:100], index, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise GraphError(f"{field}: {name!r:.60} is not in the vocabulary{hint}")
    return index[name]
