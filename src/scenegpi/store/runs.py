"""Lines that `predict` wrote, which know the digest of the photo that each graph was predicted from."""

from __future__ import annotations

from collections.abc import Iterator

from scenegpi.bulk.digests import photo_part
from scenegpi.data import Dataset
from scenegpi.data.jsonl import JsonLines
from scenegpi.data.parquet import ParquetRows
from scenegpi.store.change import Indexed


def is_run(dataset: Dataset) -> bool:
    """Whether these are lines of `predict`: of its folder, of shards, or put together."""
    rows = dataset.source
    if not isinstance(rows, JsonLines | ParquetRows) or not len(dataset):
        return False
    return None not in rows.fields(int(dataset.rows[0]), "source", "name")


def with_digests(dataset: Dataset) -> Iterator[Indexed]:
    """The graphs with the digests that their lines hold, None for other data; no photo is read."""
    rows = dataset.source if is_run(dataset) else None
    for i, graph in zip(dataset.rows.tolist(), dataset, strict=True):
        known = rows.fields(i, "digest")[0] if isinstance(rows, JsonLines | ParquetRows) else None
        yield graph, photo_part(known)
