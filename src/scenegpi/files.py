"""Reading files without trust, and writing them whole or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

from scenegpi.errors import DataError, GraphError, naming

PART = ".scenegpi.part"
"""Suffix of files that are not written completely yet; no other program writes such names."""
LOCK = ".scenegpi.lock"
MANIFEST, MANIFEST_BEGINS = "manifest.jsonl", b'{"files":['
"""The list of the files that we wrote into a folder (see `bulk.manifest`), and how it begins."""
WEB = "is a web address, expected a file: nothing is downloaded"
MAX_BYTES = 2**30
MAX_FIGURES = 2**26
MAX_BITS = 1000
"""Maximum bits of a whole number in a file of figures; a float holds 1,023."""
FREE_BYTES = 2**27
MAX_RATIO = 12
"""The values of a JSON text may take FREE_BYTES in memory, or MAX_RATIO times the text, whichever is more."""


def reason(error: OSError) -> str:
    """The operating system's message for an error, without the path."""
    return error.strerror or str(error) or type(error).__name__


def missing(path: str | Path) -> DataError:
    """The error for a path that does not exist."""
    return DataError(path, WEB if is_web(path) else "no such file or folder")


def is_web(path: str | Path) -> bool:
    """Whether this is a web address; a `Path` keeps one of its two slashes."""
    return re.match(r"[a-z]{2,}:/", str(path), re.IGNORECASE) is not None


def not_an_input(target: Path, *inputs: object) -> None:
    """DataError where a file would replace one that it is made from."""
    for source in inputs:
        if isinstance(source, str | Path) and target.exists() and os.path.exists(source) and target.samefile(source):
            raise DataError(target, "is an input, and would be overwritten: choose another name")


_noted: ContextVar[set[str] | None] = ContextVar("files_opened", default=None)


@contextmanager
def noting_files() -> Iterator[set[str]]:
    """The absolute paths of the files that `open_file` opens meanwhile."""
    names: set[str] = set()
    token = _noted.set(names)
    try:
        yield names
    finally:
        _noted.reset(token)


def open_file(path: str | Path, max_bytes: int | None = None, empty: bool = False) -> BinaryIO:
    """A regular file, opened to be read: at most `max_bytes`, and not empty unless it may be; DataError on all else.

    Every file from outside is opened with this, or checked by `check_file` before a library opens it: pipes and
    devices could block or never end.
    """
    try:
        _check_regular(path, os.stat(path))  # before it is opened: opening alone can act on a device
        handle = os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb")
        try:
            info = os.fstat(handle.fileno())
            _check_regular(path, info)
            if not info.st_size and not empty:
                raise DataError(path, "the file is empty")
            if max_bytes is not None and info.st_size > max_bytes:
                raise DataError(path, f"{info.st_size:,} bytes, more than the {max_bytes:,} this reader accepts")
        except BaseException:
            handle.close()
            raise
    except (OSError, ValueError) as error:  # a path with a zero byte is a ValueError
        said = reason(error) if isinstance(error, OSError) else str(error)
        raise DataError(path, WEB if is_web(path) else f"cannot be read ({said})") from None
    if (names := _noted.get()) is not None:
        names.add(os.path.abspath(path))
    return handle


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Turns the system's errors about a file that is read into one line."""
    try:
        yield
    except OSError as error:
        raise DataError(path, f"cannot be read ({reason(error)})") from None


def check_file(path: str | Path, max_bytes: int | None = None, empty: bool = False) -> None:
    """DataError unless `open_file` opens this file."""
    open_file(path, max_bytes, empty).close()


def read_bytes(path: str | Path, max_bytes: int = MAX_BYTES, empty: bool = False) -> bytes:
    """The content of a file; DataError as from `open_file`."""
    with reading(path), open_file(path, max_bytes, empty) as handle:
        return handle.read()


def read_lines(path: str | Path, longest: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, from 1; DataError at one that is longer, before more of it is read."""
    number = 0
    with reading(path), open_file(path) as handle:
        while line := handle.readline(longest + 1):
            number += 1
            if len(line) > longest:
                raise DataError(path, f"line {number}: longer than {longest:,} bytes")
            yield number, line


def read_text(path: str | Path, max_bytes: int = MAX_BYTES, empty: bool = False) -> str:
    """The content of a UTF-8 file, with or without a byte order mark; DataError as from `read_bytes`."""
    try:
        return read_bytes(path, max_bytes, empty).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(path, "is not UTF-8 text") from None


def parse_json(text: str | bytes, unique: bool = False) -> Any:
    """The value of a JSON text without NaN or infinities; GraphError on anything else, deep nesting included.

    With `unique`, an object that holds a key twice is an error too (plain JSON readers keep the last).
    """
    check_weight(text)
    try:
        return json.loads(text, parse_constant=no_constant, object_pairs_hook=_unique if unique else None)
    except (ValueError, RecursionError) as error:
        raise GraphError(f"JSON: {json_problem(error)}") from None


def json_problem(error: Exception) -> str:
    """What Python's JSON reader found wrong, in a few words."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if "integer string conversion" in str(error):
        return "a whole number with thousands of digits"
    return str(error)


def check_weight(text: str | bytes) -> None:
    """GraphError if the values of a JSON text would take far more memory than the text: 20 million {} in 60 MB do.

    An upper estimate for what people write, from the counts of a few characters, before anything is parsed.
    """
    if len(text) * _HEAVIEST <= FREE_BYTES:
        return
    count: Any = text.count
    counts = {mark: count(mark if isinstance(text, str) else mark.encode()) for mark in (*_WEIGHTS, '"')}
    weight = sum(each * counts[mark] for mark, each in _WEIGHTS.items())
    weight += _STRING * max(counts['"'] // 2 - counts[":"], 0)  # keys are shared, other strings are not
    if weight > max(FREE_BYTES, MAX_RATIO * len(text)):
        raise GraphError(
            f"JSON: its values would take {weight // 10**6:,} MB, too much for {len(text):,} bytes of text"
        )


_WEIGHTS = {"{": 64, "[": 64, ":": 100, ",": 16, ".": 24}
_STRING = 56
_HEAVIEST = 34  # bytes of values per byte of text: {"":{"":{...


def read_json(path: Path, max_bytes: int = MAX_BYTES, unique: bool = False) -> Any:
    """The value of a JSON file; DataError on anything that is not one, or is larger than `max_bytes`.

    With `unique`, a key that is duplicated in an object is an error: where keys are image names, one would be lost.
    """
    with naming(path, GraphError):
        return parse_json(read_bytes(path, max_bytes), unique)


def read_object(path: Path, max_bytes: int = MAX_BYTES, unique: bool = False) -> dict[str, Any]:
    """A JSON file whose top level is an object."""
    data = read_json(path, max_bytes, unique)
    if not isinstance(data, dict):
        raise DataError(path, f"expected a JSON object, found {type(data).__name__}")
    return data


def read_figures(path: Path) -> dict[str, Any]:
    """A JSON object of at most MAX_FIGURES bytes; DataError that names a whole number too large for a float."""
    data = read_object(path, MAX_FIGURES)
    keys: list[Any] = [""]
    levels: list[Any] = [iter(data.items())]
    while levels:
        entry = next(levels[-1], None)
        if entry is None:
            levels.pop()
            keys.pop()
            continue
        keys[-1], value = entry
        if isinstance(value, dict | list):
            levels.append(iter(value.items() if isinstance(value, dict) else enumerate(value)))
            keys.append("")
        elif isinstance(value, int) and value.bit_length() > MAX_BITS:
            raise DataError(path, f"{'.'.join(map(str, keys))}: a whole number with {len(str(value)):,} digits")
    return data


def read_names(path: Path) -> list[str]:
    """A JSON list of strings (class names)."""
    data = read_json(path)
    if not isinstance(data, list) or not all(isinstance(name, str) for name in data):
        raise DataError(path, "expected a JSON list of names")
    return data


def write_json(path: Path, data: Any) -> None:
    """Plain values as JSON, whole or not at all; DataError where a text, such as a path, is not UTF-8."""
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    with whole_file(path) as part:
        try:
            part.write_bytes(text.encode())
        except UnicodeEncodeError as error:
            line = text[: error.end].rpartition("\n")[2].strip()
            raise DataError(path, f"cannot be written: a text in it is not UTF-8 ({line:.200})") from None


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turns the system's errors about a full disk, a missing folder or permissions into one line."""
    try:
        yield
    except Exception as error:
        hidden = _HIDDEN_NUMBER.search(str(error))
        if hidden and getattr(error, "errno", None) is None:
            number = int(hidden[1] or hidden[2])
            error = OSError(number, os.strerror(number))
        if not isinstance(error, OSError):
            raise
        raise DataError(target, f"cannot be written ({reason(error)})") from None


_HIDDEN_NUMBER = re.compile(r"errno = (\d+),|\(os error (\d+)\)")  # in the texts of h5py and of safetensors


@contextmanager
def whole_file(target: Path, overwrite: bool = True) -> Iterator[Path]:
    """A path to write to; it becomes `target` at the end, or is removed if anything goes wrong."""
    with writing(target):
        target = target.parent.resolve() / target.name  # a link is replaced, never written through
        if target.is_dir():
            raise DataError(target, "is a directory, expected a file to write")
        if target.exists() and not target.is_file():
            raise DataError(target, "is not a regular file")
        if target.exists() and not overwrite:
            raise DataError(target, "exists already (use --force to replace it)")
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=PART, dir=target.parent)
        os.close(handle)
        part = Path(name)
        try:
            yield part
            with part.open("rb+") as written:
                os.fsync(written.fileno())
            part.chmod(0o666 & ~_umask())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def whole_folder(target: Path, overwrite: bool = False) -> Iterator[Path]:
    """A folder to write files to, removed if anything goes wrong.

    At the end it becomes `target`. Where that is a folder with other things in it, the files are moved in, each
    of them whole, and nothing else is touched.
    """
    with writing(target):
        target = target.resolve()
        if target.exists() and not target.is_dir():
            raise DataError(target, "is a file, expected a folder to write")
        filled = target.is_dir() and any(target.iterdir())
        if filled and not overwrite:
            raise DataError(target, "exists already and is not empty (use --force to replace the files in it)")
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=PART, dir=target.parent))
        try:
            yield part
            part.chmod(0o777 & ~_umask())
            if filled:
                for file in sorted(part.iterdir()):
                    file.replace(target / file.name)
            else:
                part.replace(target)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def tidy(folder: Path, below: bool = True) -> None:
    """Removes files that a killed process of ours left half written in a folder (and below); lock the folder first.

    Subfolders locked by another process, and half-written files of other programs, are left alone.
    """
    for place, folders, files in os.walk(folder):
        if LOCK in files and Path(place) != folder:
            folders.clear()
            continue
        for name in [name for name in folders if _is_part(name)]:
            folders.remove(name)
            shutil.rmtree(Path(place, name), ignore_errors=True)
        for name in filter(_is_part, files):
            Path(place, name).unlink(missing_ok=True)
        if not below:
            return


def _is_part(name: str) -> bool:
    return name.startswith(".") and name.endswith(PART)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"key {twice!r:.60} is duplicated")
    return table


def no_constant(text: str) -> Any:
    """For JSON readers: NaN and Infinity are not numbers."""
    raise ValueError(f"{text} is not a JSON number")


def no_link(path: str, flags: int) -> int:
    """Opener of files in a folder that others may write to: symbolic links are refused, not followed."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _check_regular(path: str | Path, info: os.stat_result) -> None:
    if stat.S_ISDIR(info.st_mode):
        raise DataError(path, "is a directory, expected a file")
    if not stat.S_ISREG(info.st_mode):
        raise DataError(path, "is not a regular file")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
