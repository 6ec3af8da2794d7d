"""What else a store is good for: finding pictures that are in it twice, and giving its graphs to other tools."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from scenegpi import Vocabulary
from scenegpi.cli import app
from scenegpi.store import Store
from scenegpi.store.duplicates import duplicates
from store.scenes import WORDS, scene


def picture(seed: int) -> Image.Image:
    coarse = np.random.default_rng(seed).integers(0, 255, (6, 6, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((120, 90), Image.Resampling.BICUBIC)


@pytest.fixture
def folder(tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    picture(0).save(photos / "0.png")
    picture(1).save(photos / "1.png")
    picture(0).resize((64, 48)).save(photos / "2.jpg", quality=40)  # smaller and worse
    Image.new("RGB", (50, 50), "red").save(photos / "3.png")
    Image.new("RGB", (50, 50), "blue").save(photos / "4.png")
    (photos / "5.png").write_bytes(b"no picture")
    graphs = [scene(n, file=f"{n}.jpg" if n == 2 else f"{n}.png") for n in range(3)]
    graphs += [scene(3), scene(4, (0, 2)), scene(5, (2, 2)), scene("x", file=None), scene("y", (2, 2), file=None)]
    Store(tmp_path / "store").add(graphs, [photos])
    return tmp_path


def test_pictures_that_are_stored_twice(folder):
    groups = [[hit.key for hit in group] for group in duplicates(Store(folder / "store"))]
    assert groups == [["0", "2"], ["3", "x"], ["5", "y"]]  # by the photo; by the graph where it says nothing
    done = CliRunner().invoke(app, ["search", str(folder / "store"), "--duplicates"])
    assert done.exit_code == 0, done.output
    assert "3 pictures stored more than once, 3 extra images" in done.output
    assert "0.png, 2.jpg" in done.output
    done = CliRunner().invoke(app, ["search", str(folder / "store"), "--duplicates", "--json"])
    assert json.loads(done.stdout)["duplicates"][0] == ["0.png", "2.jpg"]


def test_a_store_is_converted_like_a_data_set(folder):
    store = Store(folder / "store")
    other = Vocabulary(["dog", "man"], ["under", "on"])
    moved = scene(9, attributes=[["old"], []]).replace(
        vocabulary=other, labels=[1, 0], relations=[[0, 1, 1], [1, 0, 0]], relation_scores=[0.25, 0.5]
    )
    store.add([moved])
    data = store.dataset()
    assert [graph.image_id for graph in data] == [0, 1, 2, 3, 4, 5, "x", "y", 9]
    assert set(data.vocabulary.objects) == {*WORDS.objects, "dog"}
    assert [t[:4] for t in data[8].triplets()] == [t[:4] for t in moved.triplets()]
    assert data[8].attributes == moved.attributes
    assert data.photo_path(data[0]) == folder / "photos" / "0.png"
    done = CliRunner().invoke(
        app, ["data", "convert", str(folder / "store"), str(folder / "kg.json"), "--to", "lightrag"]
    )
    assert done.exit_code == 0, done.output
    assert len(json.loads((folder / "kg.json").read_text())["chunks"]) == 9
