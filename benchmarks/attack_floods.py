"""Small files that claim much, and files of one thing over and over: what costs memory and time, not bytes."""

from __future__ import annotations

import json
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from PIL import Image

Rng = random.Random
TEXT_BYTES = 12_000_000
ROWS = 10_000_000


def flood(path: Path, rng: Rng) -> bool:
    """Whether there was a flood for this kind of file."""
    kinds = FLOODS.get(path.suffix)
    if kinds is None:
        return False
    rng.choice(kinds)(path, rng)
    return True


def _repeated_line(path: Path, rng: Rng) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    at = rng.randrange(len(lines))
    line = lines[at] if lines[at].endswith(b"\n") else lines[at] + b"\n"
    lines[at] = rng.choice([line, b"0\n", b"{}\n", b"\n", b",\n"]) * (TEXT_BYTES // len(line))
    path.write_bytes(b"".join(lines)[: 2 * TEXT_BYTES])


def _repeated_value(path: Path, rng: Rng) -> None:
    """A list of a JSON file filled with millions of the same."""
    data = json.loads(path.read_text())
    places: list[tuple[Any, Any]] = []
    waiting = [{"": data}]
    while waiting:
        node: Any = waiting.pop()
        for key in list(node) if isinstance(node, dict) else range(min(len(node), 50)):
            if isinstance(node[key], dict | list):
                waiting.append(node[key])
                places.append((node, key))
    node, key = rng.choice(places)
    inner = node[key][:1] if isinstance(node[key], list) else []
    word = rng.choice([*(json.dumps(value) for value in inner), "{}", "[]", "1", '"ab"', "1.5", '{"":0}', '{"id":1}'])
    mark = "\x00flood\x00"
    node[key] = mark
    many = ",".join([word] * (TEXT_BYTES // (len(word) + 1)))
    text = json.dumps(data if key != "" or node[key] != mark else mark)
    path.write_text(text.replace(json.dumps(mark), f"[{many}]"))


def _unwritten_rows(path: Path, rng: Rng) -> None:
    """Boxes and relations by the million, none of which was ever written; one image owns them."""
    with h5py.File(path, "r+") as file:
        for name in ("labels", "boxes_1024", "boxes_512", "boxes_pixel", "predicates", "relationships", "scores"):
            if name in file:
                shape = (ROWS, *file[name].shape[1:])
                del file[name]
                chunks = (10**5, *shape[1:])
                file.create_dataset(name, shape, rng.choice(["f8", "i8", "i1"]), chunks=chunks, fillvalue=1)
        for name in ("label_dist", "predicate_scores", "absent_label_dist", "absent_scores", "absent_relation_scores"):
            if name in file:
                del file[name]
        if rng.random() < 0.5:
            file["img_to_last_box"][0] = file["img_to_last_rel"][0] = ROWS - 1


def _packed_rows(path: Path, rng: Rng) -> None:
    """Zeros that take a thousandth of their size in the file."""
    with h5py.File(path, "r+") as file:
        name = rng.choice(sorted(file))
        shape = (ROWS, *file[name].shape[1:])
        del file[name]
        data = file.create_dataset(name, shape, "f8", chunks=(10**6, *shape[1:]), compression="gzip")
        packed = zlib.compress(bytes(8 * 10**6 * int(np.prod(shape[1:]))), 1)
        for start in range(0, ROWS, 10**6):
            data.id.write_direct_chunk((start, *([0] * (len(shape) - 1))), packed)


def _claimed_rows(path: Path, rng: Rng) -> None:
    """An array whose items have no bytes, or whose zeros are packed a thousandfold."""
    with zipfile.ZipFile(path) as old:
        members = {member: old.read(member) for member in old.namelist()}
    member = rng.choice(sorted(members))
    header = BytesIO()
    described, rows = rng.choice([("<U0", 2 * 10**8), ("|S0", 10**9), ("<f4", 10**8), ("|i1", 10**8), ("<U1", 10**7)])
    np.lib.format.write_array_header_1_0(header, {"descr": described, "fortran_order": False, "shape": (rows,)})
    members[member] = header.getvalue()
    filling = np.dtype(described).itemsize * rows
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new:
        for name, content in members.items():
            with new.open(name, "w", force_zip64=True) as stream:
                stream.write(content)
                for _ in range(filling // 2**20 if name == member else 0):
                    stream.write(bytes(2**20))


def _large_picture(path: Path, rng: Rng) -> None:
    """Tens of millions of pixels of one colour, in any mode that the kind can hold."""
    side = rng.choice([3900, 6000, 9000])
    modes = {".png": ["RGB", "LA", "RGBA", "P", "1", "I;16"], ".tif": ["RGB", "CMYK", "F", "I;16"], ".gif": ["P"]}
    options: dict[str, Any] = {".tif": {"compression": "tiff_deflate"}, ".webp": {"lossless": True}}.get(
        path.suffix, {}
    )
    if path.suffix == ".jpg":
        options = rng.choice([{}, {"progressive": True}, {"progressive": True, "subsampling": 0}])
    if path.suffix == ".bmp":
        side = 3900
    Image.new(rng.choice(modes.get(path.suffix, ["RGB"])), (side, side)).save(path, **options)


def _many_scans(path: Path, rng: Rng) -> None:
    """A progressive JPEG whose last scan is repeated."""
    side = rng.choice([64, 2000, 6000])
    buffer = BytesIO()
    Image.new("L", (side, side), 100).save(buffer, "JPEG", progressive=True)
    data = buffer.getvalue()
    path.write_bytes(data[:-2] + data[data.rindex(b"\xff\xda") : -2] * rng.choice([40, 400, 4000]) + data[-2:])


def _overlapping_notes(path: Path, rng: Rng) -> None:
    """EXIF of hundreds of entries, each of which claims the whole of it."""
    entries = rng.choice([50, 1000, 5000])
    body = struct.pack("<H", entries)
    body += b"".join(struct.pack("<HHII", 0x9000 + i, 7, 60_000, 8) for i in range(entries))
    exif = b"II*\0" + struct.pack("<I", 8) + body + bytes(4)
    exif += bytes(max(60_100 - len(exif), 0))
    data = path.read_bytes()
    if path.suffix == ".jpg":
        piece = b"Exif\0\0" + exif[:65_000]
        path.write_bytes(data[:2] + b"\xff\xe1" + struct.pack(">H", len(piece) + 2) + piece + data[2:])
    elif path.suffix == ".png":
        piece = struct.pack(">I", len(exif)) + b"eXIf" + exif
        path.write_bytes(data[:33] + piece + struct.pack(">I", zlib.crc32(b"eXIf" + exif)) + data[33:])
    else:
        path.write_bytes(exif)


def _text_orientation(path: Path, rng: Rng) -> None:
    """The note on orientation as text, as a list, as a fraction."""
    data = bytearray(path.read_bytes())
    for mark, at in ((b"\x12\x01\x03\0", 2), (b"\x01\x12\0\x03", 3)):
        found = data.find(mark)
        if found >= 0:
            data[found + at] = rng.randrange(14)
            data[found + 4 + rng.randrange(4)] ^= rng.choice([0, 1, 2, 255])
    path.write_bytes(data)


Flood = Callable[[Path, Rng], None]
FLOODS: dict[str, list[Flood]] = {
    ".json": [_repeated_value],
    ".jsonl": [_repeated_line],
    ".csv": [_repeated_line],
    ".txt": [_repeated_line],
    ".yaml": [_repeated_line],
    ".h5": [_unwritten_rows, _unwritten_rows, _packed_rows],
    ".npz": [_claimed_rows],
    ".jpg": [_large_picture, _many_scans, _overlapping_notes, _text_orientation, _text_orientation],
    ".png": [_large_picture, _overlapping_notes, _text_orientation],
    ".tif": [_large_picture, _overlapping_notes, _text_orientation],
    ".webp": [_large_picture, _text_orientation],
    ".gif": [_large_picture],
    ".bmp": [_large_picture],
}
