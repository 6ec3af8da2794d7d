"""Which files are ours: the names of all files that we wrote into a folder, noted before they are written.

Nothing else in the folder is overwritten (unless forced) or deleted (never), and an input is never an output.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from scenegpi.bulk.journal import Journal, damage, read_rows
from scenegpi.errors import DataError
from scenegpi.files import MANIFEST, MANIFEST_BEGINS, open_file, writing

SHARDS = "shards"
SHARD_FILE = re.compile(r"\d{6,}\.(jsonl|parquet|skipped\.txt)")


class Manifest:
    """The names that we wrote into a folder; a context manager. The opener must hold the folder's lock (`folder_lock`).

    If what is done inside ends in an error, and of all names only `about` are files yet, a new manifest is removed with
    them: the folder is as it was.

    Args:
        folder: where we write.
        inputs: files that are read and so must not be written.
        force: overwrite other programs' files that are in the way; None if the command has no --force.
    """

    def __init__(self, folder: Path, inputs: Iterable[Path] = (), force: bool | None = False) -> None:
        self.folder, self.force = folder, force
        self._inputs = inputs
        self._identities: set[tuple[int, int]] | None = None
        self.names: set[str] = set()
        self.about = {MANIFEST}
        self._new = not os.path.lexists(folder / MANIFEST)
        if not self._new:
            self.names.update(_listed(folder / MANIFEST))  # before a torn line is cut: the file may not be ours
        self._journal = Journal(folder / MANIFEST)
        try:
            if self._new:
                self.claim([MANIFEST])
        except BaseException:
            self._journal.close()
            raise

    def __enter__(self) -> Manifest:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._journal.close()
        there = {name for name in self.names if os.path.lexists(self.folder / name)}
        if kind is not None and self._new and there <= self.about:
            for name in there:
                (self.folder / name).unlink()

    def claim(self, names: Iterable[str]) -> None:
        """Checks these names and notes that we write them."""
        found = list(dict.fromkeys(names))
        self.check(found)
        new = [name for name in found if name not in self.names]
        if new:
            self._journal.append([{"files": new}])
            self.names.update(new)

    def check(self, names: Iterable[str]) -> None:
        """DataError for a file that is an input, or that exists and is not ours."""
        for name in names:
            path = self.folder / name
            if not os.path.lexists(path):
                continue
            if self._is_input(path):
                raise DataError(path, "is an input, and would be overwritten: choose another folder with --out")
            if name not in self.names and name != MANIFEST and (path.is_dir() or not self.force):
                hint = "" if path.is_dir() or self.force is None else ", or --force to overwrite it"
                raise DataError(path, f"exists and was not written by this run: choose another folder with --out{hint}")

    def remove(self) -> None:
        """Deletes what we wrote, except the manifest."""
        with writing(self.folder):
            for path in (self.folder / name for name in sorted(self.names - {MANIFEST})):
                if not path.is_dir() or path.is_symlink():
                    path.unlink(missing_ok=True)
            if SHARDS in self.names and (self.folder / SHARDS).is_dir():
                for path in (self.folder / SHARDS).iterdir():
                    if SHARD_FILE.fullmatch(path.name):
                        path.unlink()

    def _is_input(self, path: Path) -> bool:
        """Whether a file is an input, also by another name: through links of any kind."""
        if self._identities is None:
            self._identities = {each for each in map(_identity, self._inputs) if each is not None}
        return _identity(path) in self._identities


def written_by_us(folder: Path) -> set[str]:
    """The names that the manifest of a folder lists; nothing if it has no manifest, or a damaged one."""
    if not (folder / MANIFEST).is_file() or (folder / MANIFEST).is_symlink():
        return set()
    try:
        return set(_listed(folder / MANIFEST))
    except DataError:
        return set()


def _listed(path: Path) -> Iterator[str]:
    with open_file(path, empty=True) as handle:
        begins = handle.read(len(MANIFEST_BEGINS))
    if not MANIFEST_BEGINS.startswith(begins.rstrip(b"\0")):
        raise damage(path, 1, "not a manifest written by scenegpi")
    for number, row in read_rows(path):
        files = row.get("files")
        if not isinstance(files, list) or not all(isinstance(name, str) and _is_plain(name) for name in files):
            raise damage(path, number, "files: expected a list of names")
        yield from files


def _is_plain(name: str) -> bool:
    """Whether this names something inside the folder."""
    return name not in ("", ".", "..") and not set(name) & {"/", "\\", "\0"}


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino
