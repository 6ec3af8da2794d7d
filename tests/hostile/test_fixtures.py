"""Files that broke this tool once (../shared/fixtures/hostile); the other tests here build their like."""

from __future__ import annotations

import pytest

from conftest import SHARED
from scenegpi.data import open_dataset, validate

HOSTILE = SHARED / "fixtures" / "hostile"
pytestmark = pytest.mark.skipif(not HOSTILE.is_dir(), reason="needs ../shared/fixtures/hostile, which is not here")


@pytest.mark.parametrize(
    ("name", "how", "wanted"),
    [
        ("h5_bomb1", "data", "refused"),
        ("h5_bomb2", "data", "refused"),
        ("h5_bomb3", "data", "refused"),
        ("h5_float16", "data", "read"),
        ("npz_U0_bomb.npz", "distributions", "refused"),
        ("bigla.png", "photo", "refused"),
        ("big16.png", "photo", "refused"),
        ("jpeg_scans2000.jpg", "photo", "refused"),
        ("exif_text_yolo", "data", "read"),
        ("exif_text_yolo/images/a.jpg", "photo", "read"),
        ("evalnpz_1_43/x.npz", "evaluation", "refused"),
        ("evalnpz_1_53/x.npz", "evaluation", "refused"),
        ("eval_markup/x[/y].npz", "evaluation", "read"),
        ("eval_markup/x[/y].jsonl", "data", "read"),
        ("vgjson_2_0/f", "data", "defects"),
        ("poison_image.jsonl", "data", "defects"),
        ("glove_markup.txt", "words", "read"),
        ("same_name/two.jsonl", "data", "read"),
        ("yolo_same_stems", "data", "read"),
    ],
)
def test_what_becomes_of_it(outcome, name, how, wanted):
    assert outcome(how, HOSTILE / name) == wanted


def test_one_image_of_forty_is_left_out_by_name():
    report = validate(HOSTILE / "poison_image.jsonl")
    assert (report.errors, report.skipped) == (1, 1)
    assert "image 5: line 6: objects[0].box: " in str(report.first_error)
    assert len(open_dataset(HOSTILE / "poison_image.jsonl")) == 39


def test_equal_stems_of_two_splits_are_six_images():
    assert len(open_dataset(HOSTILE / "yolo_same_stems")) == 6
