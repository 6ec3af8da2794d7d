"""docs/users: the pages for each kind of user run from top to bottom."""

from __future__ import annotations

import json

import numpy as np
import pytest
import uvicorn

from commands.predict_cases import photo
from data.layouts import raw_vg_of
from pages import run_page
from scenegpi.data import open_dataset, write_jsonl
from scenegpi.paper.rendered import render_folder
from store.scenes import scene


@pytest.fixture(autouse=True)
def _desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_photos(tmp_path):
    photo(tmp_path / "photo.jpg")
    photo(tmp_path / "photos" / "a.jpg")
    run_page("photos.md")
    assert (tmp_path / "gallery.html").is_file()
    assert (tmp_path / "my.store" / "store.json").is_file()


def test_raw_visual_genome_goes_through_label_studio_into_training(tmp_path, monkeypatch, caplog):
    render_folder(tmp_path / "drawn", 16, seed=3)
    graphs = [
        graph.replace(attributes=[["old", "red"], *[[]] * (len(graph) - 1)], image_id=7 * number + 1)
        for number, graph in enumerate(open_dataset("drawn"))
    ]
    raw_vg_of(tmp_path / "DATA", graphs)
    photo(tmp_path / "photos" / "a.jpg")
    started = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, sockets: started.append(server))
    run_page("data-set.md", None, {"scenegpi train": ["--epochs", "1"], "scenegpi serve": ["--port", "0", "--no-open"]})
    raw, after = open_dataset("DATA"), open_dataset("corrected.jsonl")
    assert raw.format == "visual-genome-raw"
    assert len(started) == 1
    assert "cannot hold" not in caplog.text  # nothing is lost on the way
    for drawn, a, b in zip(graphs, raw, after, strict=True):
        assert (a.image_id, a.file, a.names, a.width, a.height) == (b.image_id, b.file, b.names, b.width, b.height)
        assert drawn.names == b.names
        assert np.allclose(drawn.boxes, b.boxes, atol=1e-5)
        assert [t[:3] for t in drawn.triplets()] == [t[:3] for t in b.triplets()]
        assert drawn.attributes == a.attributes == b.attributes
    assert (tmp_path / "RUN" / "model" / "model.safetensors").is_file()


def test_papers(tmp_path):
    graphs = [scene(number, relation_scores=[0.5]) for number in range(3)]
    write_jsonl("DATA.jsonl", [graph.replace(relation_scores=None) for graph in graphs], [2] * 3)
    write_jsonl("a.jsonl", graphs)
    write_jsonl("b.jsonl", [graph.replace(relations=[[0, 1, 1]]) for graph in graphs])
    run_page("papers.md", {"DATA": "DATA.jsonl"})
    assert json.loads((tmp_path / "figures.json").read_text())
    assert "only here" in (tmp_path / "compare.html").read_text()


def test_other_graphs():
    assert run_page("other-graphs.md")["out"].nodes.shape == (4, 5)


def test_an_application(tmp_path, monkeypatch):
    from mcp.server.mcpserver import MCPServer

    from scenegpi.store import Store

    served = []
    monkeypatch.setattr(MCPServer, "run", lambda server, transport: served.append(transport))
    photo(tmp_path / "photo.jpg")
    Store("my.store").add([scene(1)])
    found = run_page("application.md")
    assert len(found["graph"].to_df("objects")) == len(found["graph"])
    assert served == ["stdio"]
