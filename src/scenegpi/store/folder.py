"""The folder of a store: parts of Parquet tables and `store.json`, which lists the parts in use.

A change notes the numbers of its parts in `store.json`, writes them, and then replaces `store.json`, so that it happens
whole or not at all. Parts that were replaced, or begun by a killed process, stay listed there as `unused`
until a change finds no reader of the store; files that `store.json` does not name are never touched.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenegpi.errors import DataError, require
from scenegpi.files import read_object, reading, write_json

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MANIFEST = "store.json"
VERSION = 1
MOST = 2**53
"""Numbers in store.json are below this."""
MEMORY = "1GB"
"""DuckDB's memory limit; beyond it, DuckDB uses the disk."""
TABLES = ("images", "objects", "relations", "attributes", "photos", "triplets", "labels", "attribute_names")
LATER = ("attributes", "attribute_names", "photos")
"""Tables that stores of earlier versions don't have."""
NULLABLE = ("id", "file", "width", "height", "before", "after")


@dataclass(frozen=True)
class Manifest:
    """The content of `store.json`: numbers of the parts in use, the next free numbers, folders of photos."""

    scenegpi_store: int = VERSION
    parts: tuple[int, ...] = ()
    unused: tuple[int, ...] = ()
    next_part: int = 1
    next_image: int = 0
    photos: tuple[str, ...] = ()
    vocabularies: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """DataError if the folder is not a store, or a value is invalid."""
        path = folder / MANIFEST
        if not is_store(folder):
            raise DataError(folder, "is not a store (`scenegpi index` makes one)")
        data = {"unused": []} | read_object(path)  # stores of earlier versions lack it
        if data.get("scenegpi_store") is True or data.get("scenegpi_store") != VERSION:
            raise DataError(
                path, f"version {data.get('scenegpi_store')!r:.40} is not supported by this reader ({VERSION} is)"
            )
        for name in ("next_part", "next_image"):
            if not _whole(data.get(name)):
                raise DataError(path, f"{name}: expected a whole number, found {data.get(name)!r:.40}")
        for name in ("parts", "unused"):
            if not isinstance(data.get(name), list) or not all(map(_whole, data[name])):
                raise DataError(path, f"{name}: expected a list of whole numbers")
        numbers = data["parts"] + data["unused"]
        if len(set(numbers)) < len(numbers):
            raise DataError(path, "parts: a number is duplicated")
        if numbers and data["next_part"] <= max(numbers):
            raise DataError(path, f"next_part: {data['next_part']}, but the last part is {max(numbers)}")
        if not isinstance(data.get("photos"), list) or not all(isinstance(name, str) for name in data["photos"]):
            raise DataError(path, "photos: expected a list of folders")
        if not isinstance(data.get("vocabularies"), dict):
            raise DataError(path, "vocabularies: expected an object")
        known: dict[str, Any] = {name: tuple(data[name]) for name in ("parts", "unused", "photos")}
        return cls(**known, **{name: data[name] for name in ("next_part", "next_image", "vocabularies")})

    def write(self, folder: Path) -> None:
        """Writes the file, whole or not at all."""
        write_json(folder / MANIFEST, asdict(self))


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST


def is_store(path: Path) -> bool:
    return (path / MANIFEST).is_file()


def part_path(folder: Path, table: str, part: int) -> Path:
    """The file of a table of a part."""
    return folder / f"{table}-{part:06}.parquet"


def store_files(folder: Path, manifest: Manifest) -> list[Path]:
    """The files of a store: its description, and all tables of the parts in use."""
    return [folder / MANIFEST, *(part_path(folder, table, part) for table in TABLES for part in manifest.parts)]


@contextmanager
def in_use(folder: Path, alone: bool = False) -> Iterator[bool]:
    """A lock held while parts are read (shared) or removed (`alone`); yields whether it is held.

    It is a system lock on the folder, so it ends with its process. `alone` waits only briefly. Without such locks
    (Windows, some network drives) nothing is locked, and parts that were replaced are not removed.
    """
    try:
        import fcntl
    except ImportError:
        yield False
        return
    with reading(folder):
        handle = os.open(folder, os.O_RDONLY)
    try:
        held = False
        for wait in (0.0, 0.01, 0.1, 0.3) if alone else (0.0,):
            time.sleep(wait)
            with suppress(OSError):  # there is a reader, or a network drive without locks
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
                held = True
                break
        yield held
    finally:
        os.close(handle)


def connect() -> DuckDBPyConnection:
    """A database in memory; DataError that says what to install if DuckDB is missing."""
    require("store", "search", "duckdb", "pyarrow")
    duckdb = import_module("duckdb")
    spill = os.path.join(tempfile.gettempdir(), f"scenegpi-{os.getpid()}")  # DuckDB's own choice is the current folder
    connection: DuckDBPyConnection = duckdb.connect(
        config={"memory_limit": MEMORY, "threads": 2, "temp_directory": spill}
    )
    connection.execute("SET enable_progress_bar = false")
    return connection


def run(connection: DuckDBPyConnection, folder: Path, text: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
    """The rows of a statement; DataError if a part is missing or broken, or the disk is full."""
    import duckdb

    try:
        rows = connection.execute(text, list(values)).fetchall()
        names = [column[0] for column in connection.description or ()]
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        said = str(error).splitlines()[0]
        if "No space left" in said:
            raise DataError(folder, "cannot be written (No space left on device); nothing was written") from None
        raise DataError(folder, f"cannot be read ({said})") from None
    firm = [k for k, name in enumerate(names) if name not in NULLABLE]
    if any(row[k] is None for row in rows for k in firm):
        raise DataError(folder, "is damaged: a value is missing in one of its parts")
    return rows


def parquet(*paths: Path) -> str:
    """Parquet files as a table of SQL."""
    return f"read_parquet({literal(*paths)}, hive_partitioning = false)"  # name=value in a path would be a column


def literal(*paths: Path) -> str:
    """A list of paths in SQL, without patterns."""
    try:
        names = [str(path).encode().decode() for path in paths]
    except UnicodeEncodeError:
        raise DataError(paths[0].parent, "the name of a store's folder must be UTF-8") from None
    quoted = (re.sub(r"[*?\[]", r"[\g<0>]", name).replace("'", "''") for name in names)
    return "[" + ", ".join(f"'{name}'" for name in quoted) + "]"


def open_views(connection: DuckDBPyConnection, folder: Path, manifest: Manifest) -> None:
    """Registers the tables of a store by name; DataError if a file is missing or holds another table."""
    from scenegpi.store.tables import EMPTY

    for table, empty in EMPTY.items():
        files = [part_path(folder, table, part) for part in manifest.parts]
        if table in LATER:
            files = [file for file in files if file.exists()]
        missing = next((file for file in files if not file.is_file()), None)
        if missing is not None:
            raise DataError(missing, "missing, though store.json names it")
        connection.register(f"empty_{table}", empty)  # invisible to cursors
        run(connection, folder, f"CREATE OR REPLACE TABLE no_{table} AS SELECT * FROM empty_{table}")
        source = parquet(*files) if files else f"no_{table}"
        run(connection, folder, f"CREATE OR REPLACE VIEW {table} AS SELECT * FROM {source}")
        wanted, found = (_columns(connection, folder, name) for name in (f"no_{table}", table))
        if wanted != found:
            odd = sorted(name for name, _ in set(wanted.items()) ^ set(found.items()))[0]
            raise DataError(folder, f"{table}: column {odd!r:.60} does not belong to a store")
        if files:
            _check_filled(connection, folder, table, files)


def _columns(connection: DuckDBPyConnection, folder: Path, table: str) -> dict[str, str]:
    return dict(run(connection, folder, f"SELECT column_name, column_type FROM (DESCRIBE {table})"))


def _check_filled(connection: DuckDBPyConnection, folder: Path, table: str, files: list[Path]) -> None:
    """DataError if a required column has missing values."""
    text = f"SELECT DISTINCT path_in_schema FROM parquet_metadata({literal(*files)}) WHERE stats_null_count > 0"
    gaps = sorted(name for (name,) in run(connection, folder, text) if name not in NULLABLE)
    if gaps:
        raise DataError(folder, f"{table}: column {gaps[0]!r:.60} has missing values")
