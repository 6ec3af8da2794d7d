"""What else a store is good for: giving its graphs to other tools."""

from __future__ import annotations

import json

import pytest
from PIL import Image
from typer.testing import CliRunner

from scenegpi import Vocabulary
from scenegpi.cli import app
from scenegpi.store import Store
from store.scenes import WORDS, scene


@pytest.fixture
def folder(tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    Image.new("RGB", (50, 50), "red").save(photos / "0.png")
    graphs = [*map(scene, range(3)), scene("x", file=None), scene("y", (2, 2), file=None)]
    Store(tmp_path / "store").add(graphs, [photos])
    return tmp_path


def test_a_store_is_converted_like_a_data_set(folder):
    store = Store(folder / "store")
    other = Vocabulary(["dog", "man"], ["under", "on"])
    moved = scene(9, attributes=[["old"], []]).replace(
        vocabulary=other, labels=[1, 0], relations=[[0, 1, 1], [1, 0, 0]], relation_scores=[0.25, 0.5]
    )
    store.add([moved])
    data = store.dataset()
    assert [graph.image_id for graph in data] == [0, 1, 2, "x", "y", 9]
    assert set(data.vocabulary.objects) == {*WORDS.objects, "dog"}
    assert [t[:4] for t in data[5].triplets()] == [t[:4] for t in moved.triplets()]
    assert data[5].attributes == moved.attributes
    assert data.photo_path(data[0]) == folder / "photos" / "0.png"
    done = CliRunner().invoke(app, ["data", "convert", str(folder / "store"), str(folder / "all.jsonl")])
    assert done.exit_code == 0, done.output
    assert len((folder / "all.jsonl").read_text().splitlines()) == 6
