"""Injuries to files: of bytes, of structure, and floods, which claim or hold millions of something."""

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
from PIL import Image

from attack_corpus import video

FLOODED = 0.1  # share of runs
TEXT_BYTES, ROWS = 12_000_000, 10_000_000
Rng = random.Random
VALUES: list[Any] = [None, True, -1, 0, 1, 0.5, 1e300, -1e300, 1e7, 10**20, 10**400, "", "x", [], {}, [[[[1]]]], [None]]
VALUES += ["\ud800", "[/x]", "\x1b[31m", "a\nb", "\x9b2J", "\u202e", "\0", "../../x", "9" * 30, "__background__"]
VALUES += [2**31, 2**63, -(2**63) - 1, 1e-320, "x" * 100_000, list(range(2000)), {"id": {}}]
TOKENS = ["null", "NaN", "-Infinity", "1e999", "1e300", "-1", "x", "0x10", "1_0", "٣", "inf", '"', "\\u0000", "[/x]"]
TOKENS += ["\x1b[2J", "=", ".", "[[a]]"]
TOKENS += ["", "9" * 5000, "9" * 400, "[" * 3000, '{"a":' * 999, "a." * 3000]
TEXT = (".json", ".jsonl", ".csv", ".txt", ".yaml", ".toml")


def damage(original: Path, work: Path, rng: Rng) -> Path:
    """A copy of a file or folder with one of its files damaged, at `work`; what one opens there is returned."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(original if original.is_dir() else original.parent, work)
    target = rng.choice(sorted(path for path in work.rglob("*") if path.is_file()))
    floods, structured = FLOODS.get(target.suffix), STRUCTURED.get(target.suffix)
    if rng.random() < 0.03:
        _replace(target, rng)
    elif floods and rng.random() < FLOODED:
        rng.choice(floods)(target, rng)
    elif structured is None or rng.random() < 0.4:
        target.write_bytes(injure(target.read_bytes(), rng, target.suffix in TEXT))
    else:
        structured(target, rng)
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
                spot, word = rng.choice(found), rng.choice(TOKENS).encode()
                data = data[: at + spot.start()] + word + data[at + spot.end() :]
    return data


def _replace(path: Path, rng: Rng) -> None:
    """Something else in the place of a file."""
    path.unlink()
    kinds = [os.mkfifo, Path.mkdir, Path.touch, lambda p: p.symlink_to("/dev/zero"), lambda p: p.symlink_to(p)]
    rng.choice(kinds)(path)


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


def _json(path: Path, rng: Rng) -> None:
    """One to three values anywhere in the tree changed, dropped, doubled or repeated; sometimes another encoding."""
    texts = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
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
    encoding = rng.choice(["utf-8"] * 8 + ["utf-16", "utf-8-sig", "utf-32"])
    path.write_bytes("\n".join(texts).encode(encoding, "surrogatepass"))


def _odd(array: np.ndarray, rng: Rng) -> np.ndarray:
    """An array of another type, shape or content."""
    array = np.asarray(array)
    kind = rng.choice(["type", "shape", "rows", "huge", "value", "value"])
    if kind == "rows" and array.ndim:
        return rng.choice([array[:0], array[:1], np.concatenate([array] * 3)])
    if kind == "huge":
        return np.zeros((rng.choice([1, 1000, 10**6]), *array.shape[1:]), array.dtype)
    try:
        with np.errstate(all="ignore"):
            if kind == "type":
                return array.astype(rng.choice(["e", "f", "d", "g", "b", "B", "Q", "q", "?", "S3"]))
            if kind == "shape":
                return array.reshape(rng.choice([(-1,), (-1, 1), (1, -1), (-1, 2), ()]))
    except ValueError:
        return np.zeros(rng.choice([(0,), (0, 4), (3, 0), (0, 10**9), (1, 1, 1)]))
    changed = np.array(array)
    if changed.size and changed.dtype.kind in "iuf":
        whole = changed.dtype.kind != "f"
        limits = [np.iinfo(changed.dtype).min, np.iinfo(changed.dtype).max] if whole else [np.nan, np.inf, 1e30]
        changed.flat[rng.randrange(changed.size)] = rng.choice([0, 1, *limits])
    return changed


def _h5(path: Path, rng: Rng) -> None:
    """One dataset replaced: odd content, rows that were never written, a link, a chunk that unpacks to more."""
    with h5py.File(path, "r+") as file:
        name = rng.choice(sorted(file))
        array = file[name][()]
        del file[name]
        kind = rng.choice(["odd", "odd", "odd", "unwritten", "link", "bomb", "none", "group"])
        if kind == "odd":
            file[name] = _odd(array, rng)
        elif kind == "unwritten":
            rows, item = rng.choice([10**4, 10**7, 10**12]), rng.choice(["f8", "i1"])
            chunks = (min(rows, 10**5), *array.shape[1:])
            file.create_dataset(name, (rows, *array.shape[1:]), item, chunks=chunks, fillvalue=rng.choice([0, 1, -1]))
        elif kind == "link":
            links = h5py.ExternalLink("/dev/zero", "x"), h5py.SoftLink(f"/{name}"), h5py.SoftLink("/labels")
            file[name] = rng.choice(links)
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
        np.savez_compressed(path, **arrays | {name: _odd(arrays[name], rng)})
    else:
        described = rng.choice(["<U0", "|S0", "|V0", "|O", "<f8", "<f2", "<M8[s]", "<c16", "|b1"])
        shape = rng.choice([(10**12,), (10**6, 10**6), (-5,), (0, 10**18), (), (2**62, 4)])
        _forge(path, f"{name}.npy", described, shape, rng.choice([0, 100, 2**20]))


def _claimed_rows(path: Path, rng: Rng) -> None:
    """An array whose items have no bytes, or whose zeros are packed a thousandfold."""
    with np.load(path) as archive:
        name = rng.choice(sorted(archive))
    described, rows = rng.choice([("<U0", 2 * 10**8), ("|S0", 10**9), ("<f4", 10**8), ("|i1", 10**8), ("<U1", 10**7)])
    _forge(path, f"{name}.npy", described, (rows,), np.dtype(described).itemsize * rows)


def _forge(path: Path, member: str, described: str, shape: tuple[int, ...], filling: int) -> None:
    header = BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": described, "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()} | {member: header.getvalue()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new:
        for name, content in members.items():
            with new.open(name, "w", force_zip64=True) as stream:
                stream.write(content)
                for start in range(0, filling if name == member else 0, 2**20):
                    stream.write(bytes(min(2**20, filling - start)))


def _safetensors(path: Path, rng: Rng) -> None:
    """The JSON header changed."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    node, key = rng.choice(_places(header))
    node[key] = rng.choice(VALUES)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", rng.choice([len(text), len(text), 2**40])) + text + data[8 + length :])


def _header(path: Path, rng: Rng) -> None:
    """Bytes where sizes and tables lie; a piece repeated; the note on orientation; for PNG with right sums again."""
    data = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, 3)):
        kind, at = rng.choice(["byte", "byte", "word", "repeat", "turn"]), rng.randrange(min(len(data), 200))
        turn = max(data.find(b"\x12\x01\x03\0"), data.find(b"\x01\x12\0\x03"))
        if kind == "byte":
            data[at] = rng.choice([0, 1, 2, 8, 0x7F, 0x80, 0xFF])
        elif kind == "word":
            data[at : at + 4] = rng.choice([b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\xff\xff", b"\x7f\xff\xff\xff"])
        elif kind == "turn" and turn >= 0:
            data[turn + rng.randrange(2, 8)] ^= rng.choice([1, 2, 7, 255])
        elif kind == "repeat":
            start, marks = rng.randrange(len(data)), (b"\xff\xda", b"\xff\xe1", b"IDAT", b"eXIf")
            found = next((i for i in (data.find(mark, start) for mark in rng.sample(marks, 4)) if i >= 0), start)
            piece = bytes(data[found : found + rng.choice([12, 200, len(data)])])
            data[found:found] = piece * min(rng.choice([1, 50, 2000]), 1 + 2**22 // len(piece))
    at = 8
    while path.suffix == ".png" and at + 12 <= len(data):
        end = at + 8 + int.from_bytes(data[at : at + 4], "big")
        data[end : end + 4] = zlib.crc32(data[at + 4 : end]).to_bytes(4, "big") if end + 4 <= len(data) else b""
        at = end + 4
    path.write_bytes(data)


def _repeated_line(path: Path, rng: Rng) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    at = rng.randrange(len(lines))
    line = rng.choice([lines[at].rstrip(b"\n") + b"\n", b"0\n", b"{}\n", b"\n", b",\n"])
    lines[at] = line * (TEXT_BYTES // len(line) // 4)
    path.write_bytes(b"".join(lines))


def _repeated_value(path: Path, rng: Rng) -> None:
    """A list of a JSON file filled with millions of the same."""
    data = {"": json.loads(path.read_text())}
    node, key = rng.choice([(node, key) for node, key in _places(data) if isinstance(node[key], dict | list)])
    inner = node[key][:1] if isinstance(node[key], list) else []
    word = rng.choice([*(json.dumps(value) for value in inner), "{}", "[]", "1", '"ab"', "1.5", '{"":0}', '{"id":1}'])
    node[key] = "\x00flood\x00"
    many = ",".join([word] * (TEXT_BYTES // (len(word) + 1)))
    path.write_text(json.dumps(data[""]).replace(json.dumps("\x00flood\x00"), f"[{many}]"))


def _many_rows(path: Path, rng: Rng) -> None:
    """Boxes and relations by the million that were never written, or zeros packed a thousandfold; of one image."""
    with h5py.File(path, "r+") as file:
        for name in rng.choice([sorted(file), [rng.choice(sorted(file))]]):
            shape = (ROWS, *file[name].shape[1:])
            if name.startswith(("img_to", "split", "absent", "label_dist", "predicate_scores")):
                continue
            del file[name]
            packed = zlib.compress(bytes(8 * 10**6 * int(np.prod(shape[1:]))), 1) if rng.random() < 0.3 else b""
            how: dict[str, Any] = {"compression": "gzip"} if packed else {"fillvalue": 1}
            data = file.create_dataset(name, shape, "f8", chunks=(10**6, *shape[1:]), **how)
            for start in range(0, ROWS if packed else 0, 10**6):
                data.id.write_direct_chunk((start, *([0] * (len(shape) - 1))), packed)
        if rng.random() < 0.5:
            file["img_to_last_box"][0] = file["img_to_last_rel"][0] = ROWS - 1


def _large_picture(path: Path, rng: Rng) -> None:
    """Tens of millions of pixels of one colour, in any mode that the kind can hold."""
    side = rng.choice([3900, 6000, 9000]) if path.suffix != ".bmp" else 3900
    modes = {".png": ["RGB", "LA", "RGBA", "P", "1", "I;16"]}
    options: dict[str, Any] = {".webp": {"lossless": True}, ".jpg": {"progressive": rng.random() < 0.7}}
    Image.new(rng.choice(modes.get(path.suffix, ["RGB"])), (side, side)).save(path, **options.get(path.suffix, {}))


def _many_scans(path: Path, rng: Rng) -> None:
    """A progressive JPEG whose last scan is repeated."""
    buffer, side = BytesIO(), rng.choice([64, 2000, 6000])
    Image.new("L", (side, side), 100).save(buffer, "JPEG", progressive=True)
    data = buffer.getvalue()
    path.write_bytes(data[:-2] + data[data.rindex(b"\xff\xda") : -2] * rng.choice([40, 400, 4000]) + data[-2:])


def _overlapping_notes(path: Path, rng: Rng) -> None:
    """EXIF of hundreds of entries, each of which claims the whole of it."""
    entries = rng.choice([50, 1000, 5000])
    exif = b"II*\0" + struct.pack("<IH", 8, entries)
    exif += b"".join(struct.pack("<HHII", 0x9000 + i, 7, 60_000, 8) for i in range(entries)) + bytes(4)
    exif += bytes(max(60_100 - len(exif), 0))
    data = path.read_bytes()
    if path.suffix == ".jpg":
        piece = b"Exif\0\0" + exif[:65_000]
        exif = data[:2] + b"\xff\xe1" + struct.pack(">H", len(piece) + 2) + piece + data[2:]
    elif path.suffix == ".png":
        piece = struct.pack(">I", len(exif)) + b"eXIf" + exif
        exif = data[:33] + piece + struct.pack(">I", zlib.crc32(b"eXIf" + exif)) + data[33:]
    path.write_bytes(exif)


def _growing_frames(path: Path, rng: Rng) -> None:
    """Small frames, then one of up to 144 million pixels."""
    side = rng.choice([2000, 6000, 12_000])
    video(path, [(64, 48), (64, 48), (side, side), (64, 48)])


Injury = Callable[[Path, Rng], None]
FLOODS: dict[str, tuple[Injury, ...]] = {".json": (_repeated_value,), ".h5": (_many_rows,), ".npz": (_claimed_rows,)}
FLOODS |= {".avi": (_growing_frames,), ".jpg": (_large_picture, _many_scans, _overlapping_notes)}
FLOODS |= dict.fromkeys((".jsonl", ".csv", ".txt", ".yaml", ".toml"), (_repeated_line,))
FLOODS |= dict.fromkeys((".webp", ".bmp"), (_large_picture,))
FLOODS[".png"] = (_large_picture, _overlapping_notes)
STRUCTURED: dict[str, Injury] = {".json": _json, ".jsonl": _json, ".h5": _h5, ".npz": _npz}
STRUCTURED |= {".safetensors": _safetensors}
STRUCTURED |= dict.fromkeys((".jpg", ".png", ".webp", ".bmp", ".avi"), _header)
