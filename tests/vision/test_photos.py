"""Photos of any kind come out as bytes, broken ones as one line."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from scenegpi import SceneGraph
from scenegpi.data import photo_files
from scenegpi.data.images import photo_size
from scenegpi.errors import DataError
from scenegpi.vision import as_photo, open_photo, photo_boxes, photos
from scenegpi.vision.photos import pixels_and_boxes
from vision.vision_cases import VOCABULARY


def ramp(width=24, height=16):
    """Red grows to the right, green downwards, blue is even."""
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return np.stack([x, y, np.full_like(x, 90)], 2).round().astype(np.uint8)


def test_rgb_is_read_as_it_is(tmp_path):
    Image.fromarray(ramp()).save(tmp_path / "a.png")
    np.testing.assert_array_equal(open_photo(tmp_path / "a.png"), ramp())


@pytest.mark.parametrize("mode", ["L", "1", "P", "RGBA", "LA", "CMYK", "YCbCr", "I;16", "I", "F", "HSV", "LAB"])
def test_every_mode_becomes_rgb_of_the_same_brightness(tmp_path, mode):
    grey = ramp()[:, :, 0]
    if mode in ("I;16", "I"):
        image = Image.fromarray(grey.astype(np.uint16) * 257)
        image = image if mode == "I;16" else image.convert("I")
    elif mode == "F":
        image = Image.fromarray(grey.astype(np.float32) / 255)
    elif mode == "P":
        image = Image.fromarray(grey).quantize(64)
    elif mode == "LAB":
        image = Image.fromarray(np.stack([grey, np.full_like(grey, 0), np.full_like(grey, 0)], 2), "LAB")
    else:
        image = Image.fromarray(np.stack([grey] * 3, 2)).convert(mode)
    found = as_photo(image)
    assert found.shape == (16, 24, 3)
    assert found.dtype == np.uint8
    if mode not in ("1", "LAB"):
        assert np.abs(found.mean(2) - grey).mean() < 6
    suffix = {"CMYK": "jpg", "YCbCr": "jpg"}.get(mode, "png")
    if mode not in ("HSV", "LAB", "F", "I"):
        image.save(tmp_path / f"a.{suffix}")
        assert np.abs(open_photo(tmp_path / f"a.{suffix}").astype(int) - found).mean() < 6


def test_what_is_transparent_is_white(tmp_path):
    pixels = np.concatenate([ramp(), np.zeros((16, 24, 1), np.uint8)], 2)
    pixels[:, :12, 3] = 255
    Image.fromarray(pixels).save(tmp_path / "a.png")
    found = open_photo(tmp_path / "a.png")
    np.testing.assert_array_equal(found[:, :12], ramp()[:, :12])
    assert (found[:, 12:] == 255).all()


@pytest.mark.parametrize("kind", ["png", "webp", "jpg"])
@pytest.mark.parametrize("turn", range(1, 9))
def test_the_camera_may_have_been_held_any_way(tmp_path, turn, kind):
    upright = Image.fromarray(ramp())
    back = {1: None, 2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}[turn]  # what undoes the turn is laid on the file
    stored = upright if back is None else upright.transpose(Image.Transpose(back))
    exif = Image.Exif()
    exif[0x0112] = turn
    path = tmp_path / f"a.{kind}"
    stored.save(path, exif=exif, **({"lossless": True} if kind == "webp" else {"quality": 95} if kind == "jpg" else {}))
    assert photo_size(path) == (24, 16)
    assert np.abs(open_photo(path).astype(int) - ramp()).mean() < (3 if kind == "jpg" else 0.1)


@pytest.mark.parametrize("kind", ["avif", "heic"])
@pytest.mark.parametrize("turn", [1, 3, 6, 8])
def test_photos_of_phones(tmp_path, kind, turn):
    if kind == "heic":
        pytest.importorskip("pillow_heif").register_heif_opener()
    image, exif = Image.fromarray(ramp(96, 64)), Image.Exif()
    exif[0x0112] = turn
    image.save(tmp_path / f"a.{kind}", exif=exif.tobytes())
    want = np.asarray(ImageOps.exif_transpose(Image.open(tmp_path / f"a.{kind}")).convert("RGB"))
    found = open_photo(tmp_path / f"a.{kind}")
    assert found.shape == ((64, 96, 3) if turn in (1, 3) else (96, 64, 3))
    assert photo_size(tmp_path / f"a.{kind}") == found.shape[1::-1]
    np.testing.assert_array_equal(found, want)
    assert {"1": (0, 0), "3": (-1, -1), "6": (0, -1), "8": (-1, 0)}[str(turn)] == _darkest(found)


def _darkest(photo):
    """The corner that was top left."""
    return min(((y, x) for y in (0, -1) for x in (0, -1)), key=lambda at: photo[at].astype(int).sum())


def test_a_heic_photo_without_its_package_is_told_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "a.heic").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(64))
    with pytest.raises(DataError, match="cannot be read as an image"):
        open_photo(tmp_path / "a.heic")
    monkeypatch.setitem(sys.modules, "pillow_heif.as_plugin", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"a.heic: needs the package pillow_heif: pip install 'scenegpi\[heic\]'"):
        open_photo(tmp_path / "a.heic")


def test_boxes_follow_the_size_of_the_photo():
    graph = SceneGraph([[10, 20, 30, 40]], [0], VOCABULARY, width=100, height=50)
    np.testing.assert_allclose(photo_boxes(graph, np.zeros((100, 50, 3), np.uint8)), [[5, 40, 15, 80]])
    unknown = SceneGraph([[10, 20, 30, 40]], [0], VOCABULARY)
    np.testing.assert_allclose(photo_boxes(unknown, np.zeros((100, 50, 3), np.uint8)), [[10, 20, 30, 40]])
    found = photo_boxes(unknown, np.zeros((100, 50, 3), np.uint8), size=(100, 50))
    np.testing.assert_allclose(found, [[5, 40, 15, 80]])


@pytest.mark.parametrize("kind", ["png", "jpg", "webp"])
@pytest.mark.parametrize(("most", "factor"), [(24 * 16, 1), (24 * 16 - 1, 2), (24 * 16 // 4 - 1, 4), (3, 8)])
def test_a_large_picture_comes_out_smaller_and_boxes_follow(tmp_path, monkeypatch, kind, most, factor):
    path = tmp_path / f"a.{kind}"
    exif = Image.Exif()
    exif[0x0112] = 6  # on its side
    Image.fromarray(ramp()).rotate(90, expand=True).save(path, exif=exif, quality=95)
    monkeypatch.setattr(photos, "MOST_PIXELS", most)
    photo = open_photo(path)
    assert photo.shape == (16 // factor, 24 // factor, 3)
    assert photo_size(path) == (24, 16)
    small = ramp().reshape(16 // factor, factor, 24 // factor, factor, 3).mean((1, 3))
    assert np.abs(photo - small).mean() < 8
    graph = SceneGraph([[8, 8, 24, 16]], [0], VOCABULARY)
    pixels, boxes = pixels_and_boxes(path, graph)
    assert pixels.shape == photo.shape
    np.testing.assert_allclose(boxes, graph.boxes / factor)


def encoded(kind="JPEG"):
    buffer = io.BytesIO()
    Image.fromarray(ramp(64, 48)).save(buffer, kind)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"GIF89a", "cannot be read as an image"),
        (b"hello, no picture here", "not one of JPEG, PNG"),
        (encoded()[:500], "cannot be read as an image"),
        (encoded("PNG")[:100], "cannot be read as an image"),
    ],
)
def test_broken_files_are_one_line(tmp_path, content, said):
    (tmp_path / "a.jpg").write_bytes(content)
    with pytest.raises(DataError, match=said) as error:
        open_photo(tmp_path / "a.jpg")
    assert str(error.value).startswith(str(tmp_path / "a.jpg"))
    assert str(error.value).count(str(tmp_path)) == 1
    assert "\n" not in str(error.value)


def test_missing_files_folders_and_huge_pictures(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="No such file"):
        open_photo(tmp_path / "none.png")
    with pytest.raises(DataError, match="directory"):
        open_photo(tmp_path)
    Image.fromarray(ramp()).save(tmp_path / "a.png")
    monkeypatch.setitem(photo_files.MAX_PIXELS, "PNG", 100)
    with pytest.raises(DataError, match="24 x 16 pixels"):
        open_photo(tmp_path / "a.png")


def test_a_picture_that_claims_to_be_enormous_is_refused_before_it_is_unpacked(tmp_path):
    data = bytearray(encoded("BMP"))
    data[18:26] = (60_000).to_bytes(4, "little") * 2
    (tmp_path / "a.bmp").write_bytes(data)
    with pytest.raises(DataError, match="pixels"):
        open_photo(tmp_path / "a.bmp")


@given(st.integers(0, 10_000), st.integers(0, 255), st.sampled_from(["JPEG", "PNG", "WEBP", "BMP"]))
def test_damaged_files_never_fall_through(place, value, kind):
    import tempfile
    from pathlib import Path

    data = bytearray(encoded(kind))
    data[place % len(data)] = value
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.png"
        path.write_bytes(data)
        try:
            found = open_photo(path)
        except DataError:
            return
        assert found.ndim == 3
        assert found.dtype == np.uint8


@pytest.mark.parametrize("array", [np.zeros((3, 4)), np.zeros((0, 5, 3), np.uint8), np.zeros((3, 4, 2), np.uint8)])
def test_arrays_that_are_no_photo(array):
    with pytest.raises(DataError, match="image: "):
        as_photo(array)
