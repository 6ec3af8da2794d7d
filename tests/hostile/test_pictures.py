"""Pictures that claim, or unpack to, more than they should, and invalid notes in them."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from scenegpi.data import DataError, open_dataset, photo_files
from scenegpi.data.images import photo_size
from scenegpi.data.photo_files import orientation
from scenegpi.vision.photos import open_photo


@pytest.fixture(scope="module")
def pictures(cases):
    return {name: path.read_bytes() for name, (how, path) in cases.items() if how == "photo"}


def refusal(path) -> str:
    with pytest.raises(DataError, match=r": cannot be read as an image \(") as caught:
        open_photo(path)
    assert str(caught.value).isprintable()
    return str(caught.value)


def written(path, data):
    path.write_bytes(data)
    return path


def encoded(image, kind, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("mode", "kind", "side"),
    [
        ("1", "PNG", 6400),
        ("LA", "PNG", 6400),
        ("I;16", "PNG", 6400),
        ("RGB", "WEBP", 4100),
    ],
)
def test_more_pixels_than_are_unpacked(tmp_path, outcome, mode, kind, side):
    path = tmp_path / "a"
    Image.new(mode, (side, side)).save(path, kind)
    assert outcome("photo", path) == "refused"
    assert f"{side:,} x {side:,} pixels" in refusal(path)
    if kind != "WEBP":
        assert photo_size(path) == (side, side)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_what_is_large_but_allowed(tmp_path, outcome, kind):
    """36 million pixels come out at a quarter of them."""
    Image.new("RGB", (7200, 5000), (200, 100, 50)).save(tmp_path / "a", kind)
    assert outcome("photo", tmp_path / "a") == "read"
    photo = open_photo(tmp_path / "a")
    assert photo.shape == (2500, 3600, 3)
    assert np.abs(photo[::500, ::500].astype(int) - [200, 100, 50]).max() < 4


def test_thousands_of_scans(tmp_path, outcome, monkeypatch):
    data = encoded(Image.new("L", (64, 64), 100), "JPEG", progressive=True)
    last = data[data.rindex(b"\xff\xda") : -2]
    few, many = (written(tmp_path / f"{n}.jpg", data[:-2] + last * n + data[-2:]) for n in (20, 2000))
    assert outcome("photo", few) == "read"
    assert outcome("photo", many) == "refused"
    assert "scans of 64 x 64 pixels" in refusal(many)
    monkeypatch.setattr(photo_files, "MAX_SCANNED", 20 * 64 * 64)
    assert "scans of 64 x 64 pixels" in refusal(few)


@pytest.mark.parametrize("options", [{"progressive": True}, {"progressive": True, "subsampling": 0}])
def test_a_progressive_jpeg_is_held_whole(tmp_path, monkeypatch, options):
    path = written(tmp_path / "a.jpg", encoded(Image.new("RGB", (100, 100)), "JPEG", **options))
    held = 2 * 100 * 100 * (3 if "subsampling" in options else 1.5)
    monkeypatch.setattr(photo_files, "MAX_HELD", held)
    assert open_photo(path).shape == (100, 100, 3)
    monkeypatch.setattr(photo_files, "MAX_HELD", held - 1)
    assert "more than this reader accepts" in refusal(path)


def exif(kind: int, count: int = 1, value: bytes = b"\6\0\0\0", tag: int = 0x0112) -> bytes:
    return b"II*\0" + struct.pack("<IHHHI", 8, 1, tag, kind, count) + value + bytes(4)


def test_orientation_is_a_number_from_1_to_8_or_nothing():
    assert orientation(exif(1)) == orientation(exif(3)) == orientation(exif(4)) == 6
    assert orientation(b"MM\0*" + struct.pack(">IHHHII", 8, 1, 0x0112, 4, 1, 6)) == 6
    for kind in range(20):
        for count in (0, 1, 2, 2**32 - 1):
            assert orientation(exif(kind, count)) in (1, 6)
    for note in (
        exif(2),
        exif(2, 2, b"6\0\0\0"),
        exif(3, 1, b"\x09\0\0\0"),
        exif(3, 1, b"\0\0\0\0"),
        b"",
        b"II*\0",
        b"x" * 99,
    ):
        assert orientation(note) == 1


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("note", [exif(2, 2, b"5\0\0\0"), exif(5), exif(12, 10**9), b"II*\0\xff\xff\xff\xff", b"junk"])
def test_invalid_notes_cost_nothing(tmp_path, kind, note):
    path = written(tmp_path / "a.jpg", encoded(Image.new("RGB", (30, 20)), kind, exif=b"Exif\0\0" + note))
    assert photo_size(path) == (30, 20)
    assert open_photo(path).shape == (20, 30, 3)


def test_a_photo_whose_orientation_is_text_in_a_data_set(tmp_path, outcome):
    for folder in ("images", "labels"):
        (tmp_path / folder).mkdir()
    for name in "ab":
        (tmp_path / "labels" / f"{name}.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    note = b"Exif\0\0" + exif(2, 2, b"5\0\0\0")
    written(tmp_path / "images" / "a.jpg", encoded(Image.new("RGB", (30, 20)), "JPEG", exif=note))
    written(tmp_path / "images" / "b.jpg", b"no picture")
    assert outcome("data", tmp_path) == "read"
    data = open_dataset(tmp_path)
    assert (data[0].width, data[0].height) == (30, 20)
    assert [d.image for d in data.report.defects] == ["b", "b"]


def many_notes(entries: int) -> bytes:
    """Each claims the whole; a reader that copies each would hold the square."""
    table = b"".join(struct.pack("<HHII", 0x1000 + i, 7, 60_000, 8) for i in range(entries))
    body = b"II*\0" + struct.pack("<IH", 8, entries) + table + bytes(4)
    return body + bytes(max(60_100 - len(body), 0))


def test_notes_that_overlap(tmp_path, outcome):
    for kind in ("JPEG", "PNG", "WEBP"):
        path = written(tmp_path / kind, encoded(Image.new("RGB", (30, 20)), kind, exif=b"Exif\0\0" + many_notes(4000)))
        assert outcome("photo", path) == "read"


def piece(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def test_pieces_by_the_thousand(tmp_path, outcome, pictures):
    png, jpeg = pictures["png"], pictures["jpeg"]
    spam = piece(b"tEXt", b"a\0b") * 60_000
    floods = {
        "png": png[:33] + spam + png[33:],
        "jpg": jpeg[:2] + b"\xff\xfe\0\2" * 60_000 + jpeg[2:],
        "fill.jpg": jpeg[:2] + b"\xff" * 5_000_000 + jpeg[2:],
    }
    for name, data in floods.items():
        assert outcome("photo", written(tmp_path / f"a.{name}", data)) == ("read" if name == "fill.jpg" else "refused")


def test_decoders_that_are_slow_or_rare_are_not_used(tmp_path):
    pixels = bytes([10, 1, 0, 0, 0, 1])
    header = struct.pack("<IIIHHIIIIII", 40, 10, 1, 1, 8, 1, len(pixels), 0, 0, 0, 0) + bytes(1024)
    bmp = b"BM" + struct.pack("<III", 14 + len(header) + len(pixels), 0, 14 + len(header)) + header + pixels
    assert "bmp_rle" in refusal(written(tmp_path / "a.bmp", bmp))
    assert "not one of JPEG, PNG" in refusal(written(tmp_path / "a.ppm", b"P6 1 1 255\nabc"))
