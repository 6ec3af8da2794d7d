"""The folder of a store: parts of Parquet tables and `store.json`, which says which parts count.

A change writes new files first and then replaces `store.json`, so that it happens whole or not at all: what a killed
process left behind is named nowhere, and the next change removes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenegpi.errors import DataError
from scenegpi.files import read_object, reason, tidy, write_json, writing
from scenegpi.graph import SceneGraph
from scenegpi.locks import folder_lock

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MANIFEST = "store.json"
VERSION = 1
ROWS = 61_440
"""In a group of rows, which a query reads or skips as a whole."""
ORDER = "predicate, subject_label, image, subject, object"
"""Of the rows of `relations`."""
MEMORY = "1GB"
"""What DuckDB may take; beyond it, it uses the disk."""


@dataclass(frozen=True)
class Manifest:
    """The content of `store.json`: numbers of the parts that count, the next free numbers, folders of photos."""

    scenegpi_store: int = VERSION
    parts: tuple[int, ...] = ()
    next_part: int = 1
    next_image: int = 0
    photos: tuple[str, ...] = ()
    vocabularies: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Of a store; DataError where there is none."""
        path = folder / MANIFEST
        if not path.is_file():
            raise DataError(folder, "is not a store (`scenegpi index` makes one)")
        data = read_object(path)
        if data.get("scenegpi_store") != VERSION:
            raise DataError(path, f"version {data.get('scenegpi_store')!r:.40}, this reader knows {VERSION}")
        numbers = [data.get("next_part"), data.get("next_image"), *_list(data, "parts")]
        whole = all(isinstance(number, int) and number >= 0 for number in numbers)
        if not whole or not all(isinstance(name, str) for name in _list(data, "photos")):
            raise DataError(path, "not the description of a store")
        if not isinstance(data.get("vocabularies"), dict):
            raise DataError(path, "vocabularies: expected an object")
        known = {name: data[name] for name in ("next_part", "next_image", "vocabularies")}
        return cls(parts=tuple(data["parts"]), photos=tuple(data["photos"]), **known)


def _list(data: dict[str, Any], name: str) -> list[Any]:
    return data[name] if isinstance(data.get(name), list) else [None]


def is_store(path: Path) -> bool:
    """Whether a folder is a store."""
    return (path / MANIFEST).is_file()


def part_path(folder: Path, table: str, part: int) -> Path:
    """Where a table of a part is."""
    return folder / f"{table}-{part:06}.parquet"


def connect() -> DuckDBPyConnection:
    """A database in memory; DataError that says what to install where DuckDB is missing."""
    if find_spec("duckdb") is None or find_spec("pyarrow") is None:
        raise DataError("store", "needs duckdb and pyarrow: pip install duckdb pyarrow")
    duckdb = import_module("duckdb")
    connection: DuckDBPyConnection = duckdb.connect(config={"memory_limit": MEMORY, "threads": 2})
    connection.execute("SET enable_progress_bar = false")
    return connection


def open_views(connection: DuckDBPyConnection, folder: Path, manifest: Manifest, tables: Iterable[str]) -> None:
    """Makes the tables of a store known by their names; DataError where a file is missing or broken."""
    import duckdb

    from scenegpi.store.tables import SCHEMAS

    for table in tables:
        files = [str(part_path(folder, table, part)) for part in manifest.parts]
        missing = next((file for file in files if not Path(file).is_file()), None)
        if missing is not None:
            raise DataError(missing, "missing, though store.json names it")
        names = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
        try:
            if files:
                source = f"SELECT * FROM read_parquet([{names}])"
            else:
                connection.register(f"no_{table}", SCHEMAS[table].empty_table() if table in SCHEMAS else _empty(table))
                source = f"SELECT * FROM no_{table}"
            connection.execute(f"CREATE OR REPLACE VIEW {table} AS {source}")
        except duckdb.Error as error:
            raise DataError(folder, f"{table} cannot be read ({str(error).splitlines()[0]})") from None


def _empty(table: str) -> Any:
    import pyarrow as pa

    from scenegpi.store.tables import SUMMARIES

    names = SUMMARIES[table][1].split(", ")
    return pa.schema([*((name, pa.string()) for name in names), ("count", pa.int64())]).empty_table()


def add_part(folder: Path, graphs: Iterable[SceneGraph], photos: Iterable[Path] = ()) -> tuple[int, int]:
    """Adds graphs as a part, in place of images of the same key; numbers of images added, and replaced."""
    connection = connect()
    from scenegpi.store.tables import TABLES, PartWriter

    with folder_lock(folder), writing(folder):
        tidy(folder)
        before = Manifest.read(folder) if is_store(folder) else Manifest()
        _remove_unnamed(folder, before)
        part = before.next_part
        paths = {table: part_path(folder, table, part) for table in TABLES}
        with PartWriter(paths, before.next_image) as writer:
            writer.add(graphs)
        added = writer.next - before.next_image
        if not added:
            raise DataError(folder, "there is no image to add")
        _check_keys(connection, paths["images"])
        _sort(connection, paths["relations"])
        _summarize(connection, folder, part)
        kept, changed, replaced = [], part + 1, 0
        for old in before.parts:
            count = _count_replaced(connection, folder, old, paths["images"])
            if count:
                replaced += count
                if _without(connection, folder, old, changed, paths["images"]):
                    kept.append(changed)
                changed += 1
            else:
                kept.append(old)
        vocabularies = before.vocabularies | {key: v.to_dict() for key, v in writer.vocabularies.items()}
        folders = dict.fromkeys((*before.photos, *(str(path.resolve()) for path in photos)))
        after = replace(
            before,
            parts=(*kept, part),
            next_part=changed,
            next_image=writer.next,
            photos=tuple(folders),
            vocabularies=vocabularies,
        )
        write_json(folder / MANIFEST, asdict(after))
        _remove_unnamed(folder, after)
    return added, replaced


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _copy(connection: DuckDBPyConnection, statement: str, target: Path) -> None:
    connection.execute(
        f"COPY ({statement}) TO '{_quoted(target)}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROWS})"
    )


def _sort(connection: DuckDBPyConnection, relations: Path) -> None:
    """By predicate and subject, so that a query skips most of the file: groups of rows know their first and last."""
    part = relations.with_name(f".{relations.name}.part")
    rows = f"SELECT * FROM '{_quoted(relations)}' ORDER BY {ORDER}"
    _copy(connection, rows, part)
    part.replace(relations)


def _summarize(connection: DuckDBPyConnection, folder: Path, part: int) -> None:
    from scenegpi.store.tables import SUMMARIES

    for name, (source, columns) in SUMMARIES.items():
        rows = f"SELECT {columns}, count(*) AS count FROM '{_quoted(part_path(folder, source, part))}' GROUP BY ALL"
        _copy(connection, rows, part_path(folder, name, part))


def _check_keys(connection: DuckDBPyConnection, images: Path) -> None:
    twice = connection.execute(
        f"SELECT key FROM '{_quoted(images)}' GROUP BY key HAVING count(*) > 1 ORDER BY key LIMIT 1"
    ).fetchone()
    if twice is not None:
        images.unlink()
        raise DataError(images.parent, f"image {json.dumps(twice[0])} is duplicated in what is added")


def _count_replaced(connection: DuckDBPyConnection, folder: Path, part: int, images: Path) -> int:
    old = _quoted(part_path(folder, "images", part))
    found = connection.execute(
        f"SELECT count(*) FROM '{old}' WHERE key IN (SELECT key FROM '{_quoted(images)}')"
    ).fetchone()
    return int(found[0]) if found else 0


def _without(connection: DuckDBPyConnection, folder: Path, old: int, new: int, images: Path) -> bool:
    """Writes part `old` again as `new`, without the images of another file; False if none is left."""
    from scenegpi.store.tables import SCHEMAS

    keys = f"SELECT key FROM '{_quoted(images)}'"
    source = _quoted(part_path(folder, "images", old))
    numbers = f"SELECT image FROM '{source}' WHERE key NOT IN ({keys})"
    for table in SCHEMAS:
        order = {"images": "image", "objects": "image, object", "relations": ORDER}[table]
        rows = f"SELECT * FROM '{_quoted(part_path(folder, table, old))}' WHERE image IN ({numbers}) ORDER BY {order}"
        _copy(connection, rows, part_path(folder, table, new))
    _summarize(connection, folder, new)
    left = connection.execute(f"SELECT count(*) FROM '{_quoted(part_path(folder, 'images', new))}'").fetchone()
    return bool(left and left[0])


def _remove_unnamed(folder: Path, manifest: Manifest) -> None:
    """Parts that `store.json` does not name: replaced, or left by a killed process."""
    for path in folder.glob("*-[0-9][0-9][0-9][0-9][0-9][0-9]*.parquet"):
        number = path.stem.rpartition("-")[2]
        if number.isdigit() and int(number) not in manifest.parts:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise DataError(path, f"cannot be removed ({reason(error)})") from None
