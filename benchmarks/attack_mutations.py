"""Injuries to files: of bytes, and of the structure that a kind of file has. `damage` makes a damaged copy."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable
from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from attack_floods import flood

FLOODED = 0.1  # share of runs
Rng = random.Random
VALUES: list[Any] = [None, True, -1, 0, 1, 0.5, 1e300, -1e300, 1e7, 10**20, 10**400, "", "x", [], {}, [[[[1]]]], [None]]
VALUES += [
    "\ud800",
    "\udc00x",
    "[/x]",
    "[bold]",
    "\x1b[31m",
    "a\nb",
    "\x9b2J",
    "\u202e",
    "\0",
    "../../x",
    "é" * 3,
    "9" * 30,
]
VALUES += [2**31, 2**63, -(2**63) - 1, 1e-320, "__background__", "x" * 100_000, list(range(2000)), {"id": {}}]
TOKENS = [
    "null",
    "NaN",
    "-Infinity",
    "1e999",
    "1e300",
    "-1",
    "",
    "x",
    "9" * 5000,
    "9" * 400,
    "0x10",
    "[" * 3000,
    '{"a":' * 999,
]
TOKENS += [
    "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    "1_0",
    "٣",
    "inf",
    "nan",
    '"',
    "\\u0000",
    "[/x]",
    "\x1b[2J",
]
TEXT = (".json", ".jsonl", ".csv", ".txt", ".yaml")


def damage(original: Path, work: Path, rng: Rng) -> Path:
    """A copy of a file or folder with one of its files damaged, at `work`; what one opens there is returned."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(original if original.is_dir() else original.parent, work)
    target = rng.choice(sorted(path for path in work.rglob("*") if path.is_file()))
    if rng.random() < 0.03:
        rng.choice(PLACES)(target)
    elif rng.random() >= FLOODED or not flood(target, rng):
        kind = STRUCTURED.get(target.suffix)
        if kind is None or rng.random() < 0.4:
            target.write_bytes(injure(target.read_bytes(), rng, target.suffix in TEXT))
        else:
            kind(target, rng)
    return work if original.is_dir() else work / original.name


def injure(data: bytes, rng: Rng, text: bool) -> bytes:
    """One to four injuries anywhere: bits flipped, bytes cut, repeated, inserted; in text, tokens exchanged."""
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(data) + 1), rng.choice([1, 1, 2, 8, 64, 1000])
        kind = rng.choice(["flip", "cut", "repeat", "noise", "end", *(["token"] * 3 if text else ["fill"])])
        if kind == "flip" and at < len(data):
            data = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        elif kind == "cut":
            data = data[:at] + data[at + length :]
        elif kind == "repeat":
            data = data[:at] + data[at : at + length] * rng.choice([2, 3, 50]) + data[at + length :]
        elif kind == "noise":
            data = data[:at] + rng.randbytes(length) + data[at + rng.choice([0, length]) :]
        elif kind == "fill":
            data = data[:at] + rng.choice([b"\0", b"\xff"]) * length + data[at + length :]
        elif kind == "end" and rng.random() < 0.3:
            data = data[:at]
        elif kind == "token":
            found = list(re.finditer(rb'-?\d+\.?\d*|"[^"]*"|\w+|\[|\{', data[at : at + 4000]))
            if found:
                spot, word = rng.choice(found), rng.choice(TOKENS).encode("utf-8", "surrogatepass")
                data = data[: at + spot.start()] + word + data[at + spot.end() :]
    return data


def _json(path: Path, rng: Rng) -> None:
    """One to three values anywhere in the tree changed, dropped, doubled or repeated; sometimes another encoding."""
    lines = path.suffix == ".jsonl"
    texts = path.read_text().splitlines() if lines else [path.read_text()]
    at = rng.randrange(len(texts))
    holder = {"": json.loads(texts[at])}
    for _ in range(rng.randint(1, 3)):
        places = [(node, key) for node, key in _places(holder) if key != "" or rng.random() < 0.02]
        if not places:
            break
        node, key = rng.choice(places)
        kind = rng.choice(["change", "change", "drop", "repeat", "exchange", "rename"])
        if kind == "change":
            node[key] = deepcopy(rng.choice(VALUES))
        elif kind == "drop" and key != "":
            del node[key]
        elif kind == "repeat" and isinstance(node[key], list):
            node[key] = node[key] * rng.choice([2, 100])
        elif kind == "exchange":
            other, name = rng.choice(places)
            node[key] = deepcopy(other[name])
        elif kind == "rename" and isinstance(node, dict) and key != "":
            node[rng.choice(["id", "x", "image_id", "\ud800", "1", ""])] = node.pop(key)
    texts[at] = json.dumps(holder[""], ensure_ascii=rng.random() < 0.7)
    text = "\n".join(texts)
    encoding = rng.choice(["utf-8"] * 8 + ["utf-16", "utf-8-sig", "utf-32"])
    path.write_bytes(text.encode(encoding, "surrogatepass"))


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a tree, at most a few thousand."""
    found, waiting = [], [node]
    while waiting and len(found) < 5000:
        node = waiting.pop()
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            found.append((node, key))
            if isinstance(node[key], dict | list):
                waiting.append(node[key])
    return found


def odd_array(array: np.ndarray, rng: Rng) -> Any:
    """An array of another type, shape or content."""
    kind = rng.choice(["type", "shape", "value", "value", "rows", "huge"])
    if kind == "type":
        types = [
            np.float16,
            np.float32,
            np.float64,
            np.longdouble,
            np.int8,
            np.uint8,
            np.uint64,
            np.int64,
            bool,
            "S3",
            "U2",
        ]
        try:
            with np.errstate(all="ignore"):
                return np.asarray(array).astype(rng.choice(types))
        except ValueError:  # names are no numbers
            return np.zeros(np.shape(array), dtype=bool)
    if kind == "shape":
        shapes = [(-1,), (-1, 1), (1, -1), (-1, 2), ()]
        try:
            return np.asarray(array).reshape(rng.choice(shapes))
        except ValueError:
            return np.zeros(rng.choice([(0,), (0, 4), (3, 0), (0, 10**9), (1, 1, 1)]))
    if kind == "rows":
        return rng.choice([array[:0], array[:1], np.concatenate([array] * 3)]) if np.ndim(array) else array
    if kind == "huge":
        return np.zeros((rng.choice([1, 1000, 10**6]), *np.shape(array)[1:]), dtype=getattr(array, "dtype", np.int8))
    changed = np.array(array)
    if changed.size and changed.dtype.kind in "iuf":
        low, high = (
            (-1, 2**31 - 1) if changed.dtype.kind == "f" else (np.iinfo(changed.dtype).min, np.iinfo(changed.dtype).max)
        )
        odd = [low, high, 0, 1] + ([np.nan, np.inf, 1e30] if changed.dtype.kind == "f" else [])
        changed.flat[rng.randrange(changed.size)] = rng.choice(odd)
    return changed


def _h5(path: Path, rng: Rng) -> None:
    """One dataset replaced: odd content, rows that were never written, a link, a chunk that unpacks to more."""
    with h5py.File(path, "r+") as file:
        name = rng.choice(sorted(file))
        array = file[name][()]
        del file[name]
        kind = rng.choice(["odd", "odd", "odd", "unwritten", "link", "bomb", "none", "group"])
        if kind == "odd":
            odd = np.asarray(odd_array(array, rng))
            file[name] = odd.astype("S2") if odd.dtype.kind == "U" else odd  # h5 has no fixed Unicode text
        elif kind == "unwritten":
            rows = rng.choice([10**4, 10**7, 10**12])
            fill = rng.choice([0, 1, -1])
            chunks = (min(rows, 10**5), *array.shape[1:])
            file.create_dataset(name, (rows, *array.shape[1:]), rng.choice(["f8", "i1"]), chunks=chunks, fillvalue=fill)
        elif kind == "link":
            file[name] = rng.choice(
                [h5py.ExternalLink("/dev/zero", "x"), h5py.SoftLink(f"/{name}"), h5py.SoftLink("/labels")]
            )
        elif kind == "bomb":
            data = file.create_dataset(name, array.shape, array.dtype, chunks=array.shape, compression="gzip")
            data.id.write_direct_chunk((0,) * array.ndim, zlib.compress(bytes(rng.choice([10, 2**20, 2**28]))))
        elif kind == "group":
            file.create_group(name)


def _npz(path: Path, rng: Rng) -> None:
    """One array replaced, or its header forged."""
    with np.load(path) as archive:
        arrays = dict(archive)
    name = rng.choice(sorted(arrays))
    if rng.random() < 0.7:
        arrays[name] = odd_array(arrays[name], rng)
        (np.savez_compressed if rng.random() < 0.5 else np.savez)(path, **arrays)
        return
    header = BytesIO()
    described = rng.choice(["<U0", "|S0", "|V0", "|O", "<f8", "<f2", "<M8[s]", "<c16", "|b1"])
    shape = rng.choice([(10**12,), (10**6, 10**6), (-5,), (0, 10**18), (), (2**62, 4)])
    np.lib.format.write_array_header_1_0(header, {"descr": described, "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path) as old:
        members = {member: old.read(member) for member in old.namelist()}
    members[f"{name}.npy"] = header.getvalue() + bytes(rng.choice([0, 100, 2**20]))
    packing = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
    with zipfile.ZipFile(path, "w", packing) as new:
        for member, content in members.items():
            new.writestr(member, content)


def _safetensors(path: Path, rng: Rng) -> None:
    """The JSON header changed."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    node, key = rng.choice(_places(header))
    node[key] = rng.choice(VALUES)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", rng.choice([len(text), len(text), 2**40])) + text + data[8 + length :])


def _picture(path: Path, rng: Rng) -> None:
    """Bytes of the header, where sizes and tables lie; a piece repeated; for PNG with the sums made right again."""
    data = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(["header", "header", "word", "repeat"])
        at = rng.randrange(min(len(data), 200))
        if kind == "header":
            data[at] = rng.choice([0, 1, 2, 8, 0x7F, 0x80, 0xFF])
        elif kind == "word":
            data[at : at + 4] = rng.choice([b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\xff\xff", b"\x7f\xff\xff\xff"])
        else:
            start, marks = rng.randrange(len(data)), (b"\xff\xda", b"\xff\xe1", b"IDAT", b"eXIf")
            found = next((i for i in (data.find(mark, start) for mark in rng.sample(marks, 4)) if i >= 0), start)
            piece = bytes(data[found : found + rng.choice([12, 200, len(data)])])
            data[found:found] = piece * min(rng.choice([1, 50, 2000]), 1 + 2**22 // len(piece))
    if path.suffix == ".png":
        data = _summed(data)
    path.write_bytes(data)


def _summed(data: bytearray) -> bytearray:
    at = 8
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        if at + 12 + length > len(data):
            break
        data[at + 8 + length : at + 12 + length] = zlib.crc32(data[at + 4 : at + 8 + length]).to_bytes(4, "big")
        at += 12 + length
    return data


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _empty(path: Path) -> None:
    path.write_bytes(b"")


PLACES: list[Callable[[Path], None]] = [_fifo, _device, _loop, _folder, _empty]
STRUCTURED: dict[str, Callable[[Path, Rng], None]] = {
    ".json": _json,
    ".jsonl": _json,
    ".h5": _h5,
    ".npz": _npz,
    ".safetensors": _safetensors,
    **dict.fromkeys((".jpg", ".png", ".webp", ".gif", ".bmp", ".tif"), _picture),
}
