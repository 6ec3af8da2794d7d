"""Photos and boxes given to `scenegpi predict`: which belong together, and what a photo changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from commands.predict_cases import (
    SCENE,
    coco_results,
    fine,
    lines,
    photo,
    predictions,
    refused,
    scene,
    sources,
)


def test_photos_take_boxes_by_name(tmp_path):
    a, b = photo(tmp_path / "in" / "a.jpg"), photo(tmp_path / "in" / "deep" / "000000000042.png", 320, 240)
    photo(tmp_path / "in" / "without.jpg")
    boxes = coco_results(tmp_path / "boxes.json", "a.jpg", 42)
    text = fine(
        tmp_path / "in",
        "--boxes",
        boxes,
        "--names",
        "coco",
        "--out",
        tmp_path / "out",
        "--model",
        "vg150-layout",
        code=1,
    )
    assert sources(tmp_path / "out") == [a.as_posix(), b.as_posix()]
    first, second = predictions(tmp_path / "out")
    assert first.names == ["person", "horse"]
    assert (first.width, first.height, second.width) == (640, 480, 320)
    assert "knife: no matching label" in text
    assert "2 boxes left out" in text
    assert "without.jpg: no boxes were given for it" in text
    assert "without.jpg" in (tmp_path / "out" / "skipped.txt").read_text()


def test_yolo_labels_lie_in_pixels_of_the_photo(tmp_path):
    photo(tmp_path / "p" / "a.png", 200, 100)
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "a.txt").write_text("0 0.5 0.5 0.5 0.5 0.9\n17 0.25 0.25 0.1 0.1 0.8\n")
    fine(
        tmp_path / "p",
        "--boxes",
        tmp_path / "labels",
        "--names",
        "coco",
        "--out",
        tmp_path / "out",
        "--formats",
        "none",
        "--labels",
        "believed",
    )
    (found,) = predictions(tmp_path / "out")
    assert found.names == ["person", "horse"]
    assert found.boxes[0].tolist() == [50, 25, 150, 75]


def test_one_photo_and_the_boxes_of_one_image_belong_together(tmp_path):
    fine(photo(tmp_path / "a.jpg"), "--boxes", lines(tmp_path / "b.jsonl", scene(1)), "--out", tmp_path / "out")
    (found,) = predictions(tmp_path / "out")
    assert found.names == list(SCENE)
    assert (tmp_path / "out" / "a.png").exists()


def test_photos_of_one_name_get_their_own_boxes_or_none(tmp_path):
    """By the longest end of the path that both share; what fits two ways is refused."""
    a, b = photo(tmp_path / "in" / "a" / "0001.jpg"), photo(tmp_path / "in" / "b" / "0001.jpg")
    graphs = [scene(1, "a/0001.jpg"), scene(2, "b/0001.jpg").subset([0, 2])]
    for order, files in ((graphs, (a, b)), (graphs[::-1], (b, a))):
        boxes, out = (
            lines(tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl", *order),
            tmp_path / f"out-{order[0].image_id}",
        )
        fine(*files, "--boxes", boxes, "--out", out, "--formats", "none")
        assert {
            Path(each).parent.name: len(graph) for each, graph in zip(sources(out), predictions(out), strict=True)
        } == {
            "a": 3,
            "b": 2,
        }
    one = lines(tmp_path / "one.jsonl", scene(1, "0001.jpg"), scene(7))
    assert "match this photo and" in refused(a, b, "--boxes", one, "--out", tmp_path / "x")
    two = lines(tmp_path / "two.jsonl", scene(1, "c/0001.jpg"), scene(2, "d/0001.jpg"))
    assert "match this photo equally well" in refused(a, b, "--boxes", two, "--out", tmp_path / "x")


def test_a_photo_that_is_not_read_is_said(tmp_path):
    boxes, file = lines(tmp_path / "b.jsonl", scene(1)), photo(tmp_path / "a.jpg")
    common = ("--boxes", boxes, "--formats", "none")
    text = fine(file, *common, "--out", tmp_path / "a")
    assert "this model uses boxes and labels only: the photo is used only to draw on" in text
    text = fine(file, *common, "--out", tmp_path / "b", "--model", "vrd-photo")
    assert "labels without scores are taken as given: the photo is used only to draw on" in text
    assert "used only to draw on" not in fine(*common, "--out", tmp_path / "c")


def test_a_photo_changes_what_a_detectors_boxes_become(tmp_path):
    """Labels with scores are combined with the pixels: another photo, another answer."""
    boxes = coco_results(tmp_path / "boxes.json", 1)
    answers = []
    for name, pixels in (("noise", None), ("black", np.zeros((480, 640, 3), np.uint8))):
        file = photo(tmp_path / f"{name}.png")
        if pixels is not None:
            Image.fromarray(pixels).save(file)
        fine(
            file, "--boxes", boxes, "--names", "coco", "--out", tmp_path / name, "--formats", "none", "--distributions"
        )
        answers.append(predictions(tmp_path / name)[0])
    assert not np.allclose(answers[0].label_dist, answers[1].label_dist, atol=1e-3)
