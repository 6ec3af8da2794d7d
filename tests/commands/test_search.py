"""`scenegpi index` and `search` as a person types them, and the page about them."""

from __future__ import annotations

import json

import pytest
from PIL import Image
from typer.testing import CliRunner

from pages import run_page
from scenegpi.cli import app
from scenegpi.data import open_dataset, write_jsonl
from scenegpi.rendered import render_folder


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
    assert "no label of this store matches 'unicorn'" in done.output


def test_the_page_about_search_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page("search.md")["nearest"]
    assert (tmp_path / "found.png").is_file()
    assert (tmp_path / "graphdb" / "load.cypher").is_file()
