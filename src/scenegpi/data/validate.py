"""validate: every defect of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scenegpi.data.open import open_dataset
from scenegpi.errors import DataError, Report


def validate(path: str | Path, **options: Any) -> Report:
    """Reads all of a data set and returns the report of its defects; DataError if it can't be read at all.

    `options` are those of `open_dataset`.
    """
    dataset = open_dataset(path, **options)
    if not len(dataset.source) and not dataset.report.errors:
        raise DataError(path, "there is no image in it")
    return dataset.report
