"""Sheets: what shapes cover, what panels cut off, that both kinds of files hold the same words."""

from __future__ import annotations

import io
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from scenegpi.viz.sheet import Sheet

SVG = "{http://www.w3.org/2000/svg}"
DPI = 100
NAMES = st.text(st.characters(exclude_categories=["C"]), max_size=12)


def pixels(sheet: Sheet) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(sheet.png(DPI))).convert("RGB"), dtype=float)


def inked(sheet: Sheet) -> float:
    """How much black there is, in square inches."""
    return float((1 - pixels(sheet).mean(axis=2) / 255).sum()) / DPI**2


def words(sheet: Sheet) -> list[str]:
    return [element.text for element in ElementTree.fromstring(sheet.svg()).iter(f"{SVG}text")]


inches = st.floats(0.3, 1.7)


@settings(max_examples=40)
@given(inches, inches, inches, inches, st.floats(1, 12))
def test_a_line_covers_its_length_times_its_width(x1, y1, x2, y2, points):
    sheet = Sheet(2, 2)
    sheet.line((x1, y1), (x2, y2), "#000000", points)
    length, width = float(np.hypot(x2 - x1, y2 - y1)), points / 72
    fine = 0.2 * length / DPI + 2e-4  # a fifth of a pixel in width
    assert inked(sheet) == pytest.approx(length * width + np.pi * width**2 / 4, rel=0.04, abs=fine)


@settings(max_examples=40)
@given(inches, inches, st.floats(0.01, 0.4), st.sampled_from([0.2, 0.6, 1.0]))
def test_a_round_rectangle_covers_its_area(width, height, radius, alpha):
    sheet = Sheet(2, 2)
    sheet.rect((0.1, 0.1, 0.1 + width, 0.1 + height), fill="#000000", radius=radius, alpha=alpha)
    radius = min(radius, width / 2, height / 2)
    assert inked(sheet) == pytest.approx(alpha * (width * height - (4 - np.pi) * radius**2), rel=0.02, abs=2e-4)


def test_an_arrow_points_at_its_end_from_every_side():
    for turn in np.linspace(0, 2 * np.pi, 9):
        sheet = Sheet(2, 2)
        sheet.arrow((1, 1), (1 + 0.8 * np.cos(turn), 1 + 0.8 * np.sin(turn)), "#000000", 1.3)
        dark = np.argwhere(pixels(sheet).mean(axis=2) < 128) / DPI
        reach = np.hypot(*(dark - 1).T)
        assert reach.max() == pytest.approx(0.8, abs=0.03)
        tip = dark[reach.argmax()]
        assert (tip - 1) @ [np.sin(turn), np.cos(turn)] == pytest.approx(0.8, abs=0.03)
        assert inked(sheet) == pytest.approx(0.8 * 1.3 / 72, rel=0.4)


def test_straight_frames_are_sharp():
    sheet = Sheet(2, 2)
    sheet.rect((0.503, 0.498, 1.5, 1.5), fill="#0072B2")
    colours = {tuple(c) for c in pixels(sheet).reshape(-1, 3).tolist()}
    assert colours == {(255, 255, 255), (0, 0x72, 0xB2)}
    sheet = Sheet(2, 2)
    sheet.rect((0.5, 0.5, 1.5, 1.5), stroke="#000000", line=72 * 0.04)
    assert inked(sheet) == pytest.approx(1.04**2 - 0.96**2, rel=0.01)


@settings(max_examples=40)
@given(st.lists(st.floats(-3, 5), min_size=4, max_size=4), st.booleans(), st.sampled_from([0.0, 0.1]))
def test_a_panel_cuts_off_what_reaches_beyond_it(corners, dashed, radius):
    x1, y1, x2, y2 = corners
    sheet = Sheet(2, 2)
    panel = sheet.panel(0.5, 0.25, 1, 1.5, size=(2, 2))
    box = (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
    panel.rect(box, "#000000", "#000000", 5, radius=radius, dashed=dashed)
    panel.line((x1, y1), (x2, y2), "#000000", 5)
    shown = pixels(sheet)
    shown[25:175, 50:150] = 255
    assert (shown == 255).all()


def test_a_panel_has_units_of_its_own():
    sheet = Sheet(2, 2)
    sheet.panel(0.5, 0.25, 1, 1.5, size=(640, 480)).rect((320, 240, 640, 480), fill="#000000")
    dark = np.argwhere(pixels(sheet).mean(axis=2) < 128)
    assert dark.min(axis=0).tolist() == [100, 100]
    assert dark.max(axis=0).tolist() == [174, 149]


def test_dashes_leave_gaps_and_go_all_the_way_round():
    sheet, line = Sheet(1, 0.6), 72 * 0.02
    sheet.rect((0.1, 0.1, 0.9, 0.5), stroke="#000000", line=line, radius=0.08, dashed=True)
    around = 2 * (0.64 + 0.24) + 2 * np.pi * 0.08
    assert 0.55 < inked(sheet) / (around * line / 72) < 0.8
    rows, columns = np.nonzero(pixels(sheet).mean(axis=2) < 128)
    assert {(row > 30, column > 50) for row, column in zip(rows, columns, strict=True)} == {
        (x, y) for x in (True, False) for y in (True, False)
    }


@pytest.mark.parametrize(("anchor", "left"), [("left", 1.0), ("middle", 0.5), ("right", 0.0)])
def test_text_is_anchored_and_as_wide_as_it_was_measured(anchor, left):
    from scenegpi.viz.text import width

    sheet = Sheet(4, 1)
    sheet.text((2, 0.5), "HHHHHHHH", 24, "#000000", anchor=anchor)
    dark = np.argwhere(pixels(sheet).mean(axis=2) < 128) / DPI
    wide = width("HHHHHHHH", False) * 24 / 72
    assert np.ptp(dark[:, 1]) == pytest.approx(wide, rel=0.05)
    assert dark[:, 1].min() == pytest.approx(2 - (1 - left) * wide, abs=0.06)
    assert (dark[:, 0].min() + dark[:, 0].max()) / 2 == pytest.approx(0.5, abs=0.02)


def test_text_beyond_the_paper_is_cut_off():
    sheet = Sheet(1, 1)
    for at in ((-9, 0.5), (0.9, 0.5), (0.5, -4), (0.5, 0.99)):
        sheet.text(at, "a long line of words", 30, "#000000")
    assert pixels(sheet).shape == (100, 100, 3)


@settings(max_examples=60)
@given(st.lists(NAMES, max_size=4))
def test_svg_is_well_formed_and_holds_the_words(texts):
    sheet = Sheet(3, 2)
    for text in texts:
        sheet.text((1, 1), text, 10, "#000000")
    assert [text or "" for text in words(sheet)] == texts
    assert pixels(sheet).shape == (200, 300, 3)


def test_photos_fill_their_panel_in_both_kinds_of_files():
    sheet = Sheet(2, 2)
    photo = np.zeros((30, 50, 3), dtype=np.uint8)
    photo[:, :25] = (200, 0, 0)
    sheet.panel(0.5, 0.5, 1, 1).photo(photo)
    shown = pixels(sheet)
    assert shown[100, 60].tolist() == [200, 0, 0]
    assert shown[100, 140].tolist() == [0, 0, 0]
    assert (shown[:50] == 255).all()
    (image,) = ElementTree.fromstring(sheet.svg()).iter(f"{SVG}image")
    assert [float(image.get(key)) for key in ("x", "y", "width", "height")] == [36, 36, 72, 72]
    assert image.get("href").startswith("data:image/jpeg;base64,")


def test_pictures_need_no_library_for_charts(tmp_path):
    code = (
        "import sys; from scenegpi.data import open_dataset, sample_path; graph = open_dataset(sample_path())[0]\n"
        f"for kind in ('png', 'svg'): graph.draw({str(tmp_path)!r} + '/x.' + kind)\n"
        "print({'matplotlib', 'torch', 'networkx'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
