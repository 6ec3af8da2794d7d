"""Whose file is it: inputs and files of others are never overwritten or deleted; an answer is never a stale one."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from commands.predict_cases import call, fine, lines, photo, refused, scene, sources
from models.model_cases import random_graphs, small_model
from scenegpi.bulk.digests import image_digest
from scenegpi.bulk.manifest import Manifest, written_by_us
from scenegpi.bulk.run_folder import LINES
from scenegpi.bulk.run_inputs import find_photos
from scenegpi.cli import app
from scenegpi.data import open_dataset
from scenegpi.errors import DataError
from scenegpi.files import LOCK, MANIFEST
from scenegpi.models import save_model
from scenegpi.onnx.exported import kept_file
from scenegpi.store import Store

LAYOUT = ("--model", "vg150-layout")


def rows(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / LINES).read_text().splitlines()]


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines(tmp_path / "boxes.jsonl", scene(file="holiday.png"))
    photo(tmp_path / "holiday.png")
    return tmp_path


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize("out", [".", "link", "hard"])
def test_a_photo_is_never_the_output(desk, out, force):
    (desk / "link").symlink_to(desk)
    (desk / "hard").mkdir()
    os.link(desk / "holiday.png", desk / "hard" / "holiday.png")
    before = (desk / "holiday.png").read_bytes()
    there = sorted(desk.rglob("*"))
    message = refused("holiday.png", "--boxes", "boxes.jsonl", "--out", out, *LAYOUT, *force)
    assert "holiday.png: is an input" in message
    assert sorted(desk.rglob("*")) == there
    assert (desk / "holiday.png").read_bytes() == before
    assert (desk / "hard" / "holiday.png").read_bytes() == before


def test_a_photo_that_only_boxes_name_is_never_the_output(desk):
    before = (desk / "holiday.png").read_bytes()
    assert "holiday.png: is an input" in refused("--boxes", "boxes.jsonl", "--out", ".", *LAYOUT, "--force")
    assert (desk / "holiday.png").read_bytes() == before


def test_an_error_after_the_first_answers_keeps_them(desk):
    boxes = lines(desk / "many.jsonl", scene(1), scene(2))
    words = ["--boxes", boxes, "--out", "out", *LAYOUT, "--formats", "dot", "--batch", 1]
    (desk / "out").mkdir()
    (desk / "out" / "2.dot").write_text("mine")
    assert "2.dot: exists and was not written" in refused(*words)
    assert written_by_us(desk / "out") == {MANIFEST, "run.json", LINES, "1.dot"}
    assert len(rows(desk / "out")) == 1


def test_boxes_are_never_the_output(desk):
    lines(desk / "out" / LINES, scene(1))
    before = (desk / "out" / LINES).read_bytes()
    for force in ([], ["--force"]):
        assert f"{LINES}: is an input" in refused("--boxes", f"out/{LINES}", "--out", "out", *LAYOUT, *force)
    assert (desk / "out" / LINES).read_bytes() == before


def test_a_file_of_another_is_overwritten_by_force_only_and_never_deleted(desk):
    (desk / "out").mkdir()
    theirs = {"holiday.dot": "mine", "notes.txt": "mine", ".film.mkv.part": "mine", "shards": None}
    for name, text in theirs.items():
        (desk / "out" / name).mkdir() if text is None else (desk / "out" / name).write_text(text)
    words = ["holiday.png", "--boxes", "boxes.jsonl", "--out", "out", *LAYOUT, "--formats", "dot"]
    assert "holiday.dot: exists and was not written by this run" in refused(*words)
    assert (desk / "out" / "holiday.dot").read_text() == "mine"
    fine(*words, "--force")
    assert (desk / "out" / "holiday.dot").read_text().startswith("digraph")
    fine(*words, "--force")
    assert {"notes.txt", ".film.mkv.part", "shards"} <= {path.name for path in (desk / "out").iterdir()}


@pytest.mark.parametrize("name", [LINES, "run.json", "skipped.txt"])
def test_fixed_names_of_another_are_refused(desk, name):
    (desk / "out").mkdir()
    (desk / "out" / name).write_text("mine")
    assert f"{name}: exists and was not written" in refused("--boxes", "boxes.jsonl", "--out", "out", *LAYOUT)
    assert {path.name: path.read_text() for path in (desk / "out").iterdir()} == {name: "mine"}
    fine("--boxes", "boxes.jsonl", "--out", "out", *LAYOUT, "--force", "--formats", "none")
    assert len(rows(desk / "out")) == 1
    if name == "skipped.txt":
        assert (desk / "out" / name).read_text() == "mine"


@pytest.mark.parametrize("name", ["../victim", "/victim", "..", "", "a/b", 7])
def test_a_hostile_manifest_leads_nowhere(tmp_path, name):
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / MANIFEST).write_text(json.dumps({"files": [name]}) + "\n")
    with pytest.raises(DataError, match=f"{MANIFEST}: line 1: damaged"):
        Manifest(tmp_path / "out", force=True)
    assert written_by_us(tmp_path / "out") == set()


@pytest.mark.parametrize("text", ['{"audio": "a.wav"}', '{"audio": "a.wav"}\n{"audio": "b.wav"}', "mine", "[]\n"])
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_manifest_of_another_program_is_refused_as_it_is(desk, text, force):
    (desk / "out").mkdir()
    (desk / "out" / MANIFEST).write_text(text)
    assert f"{MANIFEST}: " in refused("--boxes", "boxes.jsonl", "--out", "out", *LAYOUT, *force)
    assert {path.name: path.read_text() for path in (desk / "out").iterdir()} == {MANIFEST: text}


def test_a_lock_of_another_program_stays(desk):
    (desk / "out").mkdir()
    (desk / "out" / ".lock").write_text("mine")
    fine("--boxes", "boxes.jsonl", "--out", "out", *LAYOUT, "--formats", "none")
    assert (desk / "out" / ".lock").read_text() == "mine"
    assert LOCK not in {path.name for path in (desk / "out").iterdir()}


def test_a_graph_is_not_drawn_over_its_photo(desk):
    before = (desk / "holiday.png").read_bytes()
    (desk / "link.png").symlink_to("holiday.png")
    for graph, given in ((scene(), "holiday.png"), (scene(photo=str(desk / "holiday.png")), None)):
        for target in ("holiday.png", "link.png"):
            with pytest.raises(DataError, match="is an input"):
                graph.draw(target, photo=given)
    assert (desk / "holiday.png").read_bytes() == before


def test_files_that_a_command_reads_are_not_what_it_writes(desk):
    lines(desk / "scores.json", scene())
    before = (desk / "scores.json").read_bytes()
    for words in (
        ["eval", "scores.json", "--task", "predcls", "--json", "scores.json"],
        ["eval", "boxes.jsonl", "--task", "predcls", "--data", "scores.json", "--json", "scores.json"],
        ["search", "store", "--graph", "scores.json", "--out", "scores.json"],
    ):
        assert "scores.json: is an input" in str(CliRunner().invoke(app, words).exception)
    Store(desk / "store").add([scene(1, file="holiday.png")])
    done = CliRunner().invoke(app, ["search", "store", "man", "--photos", ".", "--out", "holiday.png"])
    assert "holiday.png: is an input" in str(done.exception)
    assert (desk / "scores.json").read_bytes() == before


def test_the_demo_overwrites_nothing_of_others(desk):
    (desk / "scenes.jsonl").write_text("mine")
    done = CliRunner().invoke(app, ["demo", "--out", "."])
    assert (
        str(done.exception) == "scenes.jsonl: exists and was not written by this run: choose another folder with --out"
    )
    assert not (desk / MANIFEST).exists()
    assert (desk / "scenes.jsonl").read_text() == "mine"


def test_of_many_images_the_first_are_printed_and_the_rest_counted(desk):
    boxes = lines(desk / "many.jsonl", *(scene(k) for k in range(7)))
    words = ["--boxes", boxes, "--out", "out", *LAYOUT, "--formats", "none"]
    text = fine(*words)
    assert text.count("man  wearing  hat") == 5
    assert "2 more images: `scenegpi report out` shows them" in text
    assert "7 more images: `scenegpi report out` shows them" in fine(*words)


def test_the_same_again_prints_its_triplets_again(desk, monkeypatch):
    words = ["holiday.png", "--boxes", "boxes.jsonl", "--out", "out", *LAYOUT]
    first = fine(*words)
    monkeypatch.setattr("scenegpi.bulk.workers.Predictor", None)  # no model is loaded for it
    second = fine(*words)
    assert "man  wearing  hat" in first
    assert [line for line in first.splitlines() if "wearing" in line] == [
        line for line in second.splitlines() if "wearing" in line
    ]
    assert "1 image done before, from the same input" in second
    assert len(rows(desk / "out")) == 1


def test_a_replaced_photo_and_corrected_boxes_give_new_answers(desk):
    words = ["holiday.png", "--boxes", "boxes.jsonl", "--out", "out", *LAYOUT, "--formats", "png"]
    fine(*words)
    (first,) = rows(desk / "out")
    picture = (desk / "out" / "holiday.png").read_bytes()
    photo(desk / "holiday.png", 320, 240)
    assert "1 image, " in fine(*words)
    (second,) = rows(desk / "out")
    assert second["digest"] != first["digest"]
    assert (desk / "out" / "holiday.png").read_bytes() != picture
    lines(desk / "boxes.jsonl", scene(file="holiday.png", scores=[0.9, 0.8, 0.7]))
    fine(*words[:-1], "none")
    (third,) = rows(desk / "out")
    assert [each["score"] for each in third["objects"]] == [0.9, 0.8, 0.7]
    assert not (desk / "out" / "holiday.png").exists()  # it showed what is no longer so
    fine(*words)
    assert (desk / "out" / "holiday.png").exists()
    assert rows(desk / "out") == [third]


def test_whatever_decides_an_answer_is_in_its_digest(desk):
    """Boxes after a run without any, among others: the second line of the README after its first."""
    path, graph = desk / "holiday.png", scene(file="holiday.png")
    boxes = [None, graph, graph.replace(boxes=graph.boxes + 1), graph.replace(labels=graph.labels[::-1].copy())]
    boxes += [graph.replace(scores=[0.9, 0.8, 0.7]), graph.replace(width=640, height=481), graph.replace(image_id=9)]
    boxes += [graph.replace(attributes=[[word], [], []]) for word in ("old", "young")]
    boxes += [graph.replace(pairs=[pair], pair_dist=[[1.0]]) for pair in ((0, 1), (1, 0))]
    found = [image_digest(path, each, "s") for each in boxes]
    found += [image_digest(None, graph, "s"), image_digest(b"other", graph, "s"), image_digest(path, graph, "t")]
    assert len(set(found)) == len(found)
    assert image_digest(path.read_bytes(), scene(file="holiday.png"), "s") == found[1]


def test_a_photo_that_broke_takes_its_old_answer_along(desk):
    words = ["holiday.png", "--boxes", "boxes.jsonl", "--out", "out", *LAYOUT]
    fine(*words)
    (desk / "holiday.png").write_bytes(b"no picture")
    fine(*words, code=1)
    assert not (desk / "out" / LINES).exists()
    assert not (desk / "out" / "holiday.png").exists()


def test_boxes_that_are_gone_take_their_old_answer_along(desk):
    photo(desk / "b.png", 320)
    lines(desk / "boxes.jsonl", scene(file="holiday.png"), scene(file="b.png"))
    words = ["holiday.png", "b.png", "--out", "out", *LAYOUT, "--formats", "dot"]
    fine(*words, "--boxes", "boxes.jsonl")
    lines(desk / "boxes.jsonl", scene(file="holiday.png"), scene(file="c.png"))
    assert "skipped: b.png: no boxes were given for it" in fine(*words, "--boxes", "boxes.jsonl", code=1)
    assert [row["name"] for row in rows(desk / "out")] == ["holiday"]
    assert not (desk / "out" / "b.dot").exists()


def test_an_answer_without_boxes_is_not_about_boxes(desk):
    """A photo that was predicted without boxes keeps that answer when a file of boxes leaves it out."""
    photo(desk / "b.png", 320)
    words = ["--model", "vg150-photo", "--out", "out", "--formats", "none"]
    fine("b.png", *words)
    before = rows(desk / "out")
    fine("holiday.png", "b.png", "--boxes", "boxes.jsonl", *words, "--resume", code=1)
    assert rows(desk / "out")[:1] == before


def test_files_of_all_images_are_never_out_of_date(desk):
    """Whatever formats the next call asks for: a photo was replaced, another was added, and then both broke."""
    words = ["--out", "out", *LAYOUT, "--formats"]
    photo(desk / "b.png", 320)
    lines(desk / "boxes.jsonl", scene(file="holiday.png"), scene(file="b.png"))
    fine("holiday.png", "--boxes", "boxes.jsonl", *words, "coco,rdf")
    lines(desk / "boxes.jsonl", scene(file="holiday.png", scores=[0.9, 0.8, 0.7]), scene(file="b.png"))
    assert "predictions.coco.json" in fine("holiday.png", "b.png", "--boxes", "boxes.jsonl", *words, "none")
    found = json.loads((desk / "out" / "predictions.coco.json").read_text())
    assert [each["file_name"] for each in found["images"]] == ["holiday.png", "b.png"]
    assert [each.get("score") for each in found["annotations"]][:3] == [0.9, 0.8, 0.7]
    assert "b.png" in (desk / "out" / "predictions.nt").read_text()
    for name in ("holiday.png", "b.png"):
        (desk / name).write_bytes(b"no picture")
    fine("holiday.png", "b.png", "--boxes", "boxes.jsonl", *words, "png", code=1)
    assert not list((desk / "out").glob("predictions.*"))


def test_formats_asked_for_later_are_written(desk):
    words = ["holiday.png", "--boxes", "boxes.jsonl", "--out", "out", *LAYOUT, "--formats"]
    fine(*words, "none")
    before = rows(desk / "out")
    assert "1 image done before" in fine(*words, "dot,graphml,coco", "--jobs", 2)
    assert rows(desk / "out") == before
    for name in ("holiday.dot", "holiday.graphml", "predictions.coco.json"):
        assert (desk / "out" / name).stat().st_size
    (desk / "out" / "holiday.dot").unlink()
    fine(*words, "dot")
    assert (desk / "out" / "holiday.dot").exists()


def test_a_replaced_model_gives_new_answers(tmp_path):
    boxes = lines(tmp_path / "boxes.jsonl", *random_graphs((4,), dist=False))
    words = ["--boxes", boxes, "--model", tmp_path / "model", "--out", tmp_path / "out", "--formats", "none"]
    save_model(small_model("baseline"), tmp_path / "model")
    fine(*words)
    shutil.rmtree(tmp_path / "model")
    save_model(small_model("baseline", seed=7), tmp_path / "model")
    fine(*words)
    assert (tmp_path / "out-2" / LINES).exists()
    assert "weights was" in refused(*words, "--resume")


def test_photos_of_one_name_in_two_calls_are_two_images(desk):
    for folder in ("a", "b"):
        photo(desk / folder / "img0.jpg", 640 if folder == "a" else 320)
        lines(desk / folder / "boxes.jsonl", scene(file="img0.jpg"))
    for folder in ("a", "b", "a"):
        os.chdir(desk / folder)
        fine("img0.jpg", "--boxes", "boxes.jsonl", "--out", desk / "out", *LAYOUT, "--formats", "dot,png")
    found = rows(desk / "out")
    assert [row["name"] for row in found] == ["img0", "img0 (2)"]
    assert [row["photo"] for row in found] == [str(desk / folder / "img0.jpg") for folder in ("a", "b")]
    assert len(list((desk / "out").glob("*.png"))) == 2


def test_folders_whose_names_are_not_utf8_are_found_again(desk):
    folder = Path(os.fsdecode(os.fsencode(desk) + b"/caf\xe9"))
    place = photo(folder / "a.png")
    words = [folder, "--boxes", lines(desk / "b.jsonl", scene(1)), "--out", "out", *LAYOUT, "--formats", "none"]
    for _ in range(2):
        fine(*words)
    (row,) = rows(desk / "out")
    assert Path(row["photo"]) == place
    assert row["source"].encode()


def test_what_a_run_drew_is_no_photo_of_the_folder(desk):
    photo(desk / "in" / "a.jpg")
    words = ["in", "--boxes", lines(desk / "b.jsonl", scene("a")), *LAYOUT]
    for out in ("in", "in/deep", "in"):
        fine(*words, "--out", out)
        assert len(sources(desk / out)) == 1
    assert [each.name for each in find_photos(["in"]).photos] == ["a.jpg"]
    assert find_photos(["in"]).left_out == []


def test_what_a_run_drew_is_no_photo_of_its_lines(desk):
    """It has the photo's name, and boxes would be read from a drawing of boxes."""
    fine("holiday.png", "--boxes", "boxes.jsonl", "--out", "out", *LAYOUT)
    assert (desk / "out" / "holiday.png").exists()
    run = open_dataset(desk / "out" / LINES)
    assert run[0].file == "holiday.png"
    assert run.image_path(0) is None
    assert open_dataset(desk / "out" / LINES, images=desk).image_path(0) == desk / "holiday.png"
    fine("--boxes", f"out/{LINES}", "--out", "again", *LAYOUT)
    assert "photo" not in rows(desk / "again")[0]
    (desk / "out" / MANIFEST).write_text('{"file": "holiday.png"}\n')  # another program's
    assert run.image_path(0) == desk / "out" / "holiday.png"


def test_links_that_lead_back_end(desk):
    photo(desk / "in" / "a.jpg")
    photo(desk / "in" / ".hidden" / "b.jpg")
    for name in ("x", "y"):
        (desk / "in" / name).symlink_to(desk / "in")
    for words in (["in/**/*.jpg"], ["in/**"], [f"{desk}/in/**/a.*"], ["in"]):
        found = [each.name for each in find_photos(words).photos]
        assert found == (["b.jpg", "a.jpg"] if words == ["in"] else ["a.jpg"]), words


def test_files_left_out_are_named_and_counted(desk):
    photo(desk / "in" / "a.jpg")
    for name in ("clip.raw", "README", ".hidden"):
        (desk / "in" / name).write_text("x")
    words = ["in", "--boxes", lines(desk / "b.jsonl", scene("a")), *LAYOUT, "--out", "out", "--formats", "none"]
    assert "2 files left out, not recognised as photos: README, clip.raw" in fine(*words)
    for k in range(9):
        (desk / "in" / f"{k}.txt").write_text("x")
    assert "11 files left out, not recognised as photos: .txt 9, no suffix 1, .raw 1" in fine(*words)


def test_an_empty_name_is_not_the_current_folder(desk):
    assert "the name of a photo or folder is empty" in refused("", "--out", "out")


def test_a_folder_that_may_not_be_listed_is_named(desk, monkeypatch):
    for name in ("in/a.jpg", "in/closed/b.jpg"):
        photo(desk / name)
    listed = os.scandir

    def scandir(path="."):
        if Path(os.fsdecode(path)).name == "closed":
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = find_photos(["in"])
    assert [each.name for each in found.photos] == ["a.jpg"]
    assert found.problems == ["in/closed: this folder cannot be listed (Permission denied)"]
    with pytest.raises(DataError, match=r"in/closed: this folder cannot be listed"):
        find_photos(["in/closed"])
    words = ["in", "--boxes", lines(desk / "b.jsonl", scene("a")), *LAYOUT, "--out", "out", "--formats", "none"]
    assert "in/closed: this folder cannot be listed" in fine(*words, code=1)


def test_folders_that_cannot_be_written_are_one_line(desk, monkeypatch):
    (desk / "loop").symlink_to(desk / "loop")
    assert "loop: cannot be written" in refused("--boxes", "boxes.jsonl", *LAYOUT, "--out", "loop")
    (desk / "gone").mkdir()
    monkeypatch.chdir(desk / "gone")
    (desk / "gone").rmdir()
    assert "out: cannot be written" in refused("--boxes", desk / "boxes.jsonl", *LAYOUT, "--out", "out")


def test_labels_are_called_given_only_where_they_were(desk):
    photo(desk / "tiny.png", 16, 16)
    text = call("tiny.png", "--out", "out", "--formats", "none").output
    assert "taken as given" not in text
    assert "using vg150-photo" in text


def test_a_cache_whose_name_is_too_long_is_one_line(monkeypatch):
    monkeypatch.setenv("SCENEGPI_CACHE", "x" * 5000)
    with pytest.raises(DataError, match="File name too long"):
        kept_file("vg150-layout")
