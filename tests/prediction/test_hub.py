"""Models as Hugging Face's libraries save, load and run them; the real packages, no network."""

from __future__ import annotations

import socket

import pytest

from commands.predict_cases import photo
from scenegpi import Predictor
from scenegpi.data import DataError

hub = pytest.importorskip("scenegpi.prediction.hub")


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a connection was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def test_saved_and_loaded_again(tmp_path):
    from huggingface_hub import ModelCard

    first = hub.HubPredictor("vg150-layout")
    first.save_pretrained(tmp_path / "model")
    again = hub.HubPredictor.from_pretrained(str(tmp_path / "model"))
    given = {"boxes": [[0, 0, 50, 90], [10, 60, 90, 99]], "labels": ["man", "horse"]}
    assert again(**given) == first(**given) == Predictor(tmp_path / "model")(**given)
    card = ModelCard.load(tmp_path / "model" / "README.md")
    assert card.data.library_name == "scenegpi"
    assert "scene-graph" in card.data.tags
    assert "# vg150-layout" in card.text
    again.save_pretrained(tmp_path / "twice")
    again.save_pretrained(tmp_path / "twice")  # its own folder is replaced
    assert (tmp_path / "twice" / "README.md").read_text().count("library_name") == 1
    hub.HubPredictor(first.model).save_pretrained(tmp_path / "loaded")  # of a model in memory
    assert Predictor(tmp_path / "loaded")(**given) == first(**given)


def test_a_name_of_the_hub_comes_from_its_clients_cache(tmp_path, monkeypatch):
    import huggingface_hub

    place, commit = tmp_path / "models--org--name", 40 * "a"
    hub.HubPredictor("vg150-layout").save_pretrained(place / "snapshots" / commit)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(commit)
    given = {"boxes": [[0, 0, 50, 90], [10, 60, 90, 99]], "labels": ["man", "horse"]}
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    found = hub.HubPredictor.from_pretrained("org/name", cache_dir=tmp_path, local_files_only=True)
    assert found(**given) == Predictor("vg150-layout")(**given)
    for name in ("org/other", "no name"):
        with pytest.raises(DataError, match=f"{name}: is not a folder, and cannot be fetched from the hub") as error:
            hub.HubPredictor.from_pretrained(name, cache_dir=tmp_path)
        assert "\n" not in str(error.value)


def test_a_folder_of_other_things_is_left_alone(tmp_path):
    (tmp_path / "config.json").write_text("mine")
    with pytest.raises(DataError, match="not a model folder"):
        hub.HubPredictor("vg150-layout").save_pretrained(tmp_path)
    assert (tmp_path / "config.json").read_text() == "mine"


def test_a_pipeline_of_transformers(tmp_path):
    from transformers import pipeline

    path = photo(tmp_path / "a.jpg")
    pipe = pipeline("scene-graph", model=hub.SceneGraphModel.from_pretrained("vg150-photo"))
    boxes = {"boxes": [[0, 0, 30, 40], [10, 10, 60, 60]], "labels": ["man", "horse"]}
    found = pipe(str(path or tmp_path / "a.jpg"), **boxes)
    graph = Predictor("vg150-photo")(tmp_path / "a.jpg", **boxes)
    assert [each["label"] for each in found["objects"]] == graph.names
    assert found["objects"][0]["box"] == {"xmin": 0, "ymin": 0, "xmax": 30, "ymax": 40}
    assert [row["predicate"] for row in found["relations"]] == [t.predicate for t in graph.triplets()]
    assert len(pipe([str(tmp_path / "a.jpg")] * 2)) == 2
