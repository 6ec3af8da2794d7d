"""What a start model finds in photos of the other annotation: read once, kept, learned like annotated boxes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.models import load_model
from scenegpi.training import taught, train
from scenegpi.training.photo_batches import LISTED, TrainingPhotos
from scenegpi.training.photo_sets import Annotations, LabelSets
from scenegpi.training.taught import Finds, read_finds
from scenegpi.vocabulary import Vocabulary
from training.coloured import write_scenes
from training.test_photo_network import settings
from vision.vision_cases import needs_package

LABELS, OTHER = ("man", "shirt", "tree"), ("person", "zebra")


def annotated(*boxes: tuple[int, int, int, int]) -> SceneGraph:
    return SceneGraph(np.array(boxes, float).reshape(-1, 4), [0] * len(boxes), Vocabulary(OTHER), width=100, height=100)


def finds(*rows: tuple[list[float], float, str]) -> Finds:
    dist = np.array([np.eye(len(LABELS))[LABELS.index(name)] * 0.9 + 0.1 / 3 for _, _, name in rows], np.float16)
    boxes = np.array([box for box, _, _ in rows], np.float32)
    return Finds(boxes, np.array([chance for _, chance, _ in rows], np.float32), dist)


SETS = LabelSets(LABELS, LABELS, OTHER)
ROWS = (
    ([0.1, 0.1, 0.5, 0.5], 0.9, "man"),  # of the other annotation's list: that has all of them
    ([0.6, 0.6, 0.9, 0.9], 0.4, "tree"),
    ([0.1, 0.1, 0.52, 0.5], 0.9, "shirt"),  # the annotated person's very box
    ([0.2, 0.3, 0.4, 0.5], 0.1, "shirt"),
)


def photo(path: str = "7.jpg"):
    other = {"7": (Path(path), annotated((10, 10, 50, 50))), "8": (Path(path), annotated((10, 10, 50, 50)))}
    return Annotations(SETS, other, {"1": "8"}, finds={"7": finds(*ROWS)}).training([], [])[0]


def test_finds_of_kinds_that_are_not_listed_are_added():
    made = photo()
    assert made.rows.tolist() == [SETS.other[0], SETS.anything, SETS.anything]
    assert made.kinds.tolist() == [0, 1, 1]
    assert made.listed == (True, True)
    assert made.said.argmax(1).tolist() == [2, 1]
    np.testing.assert_allclose(made.chance, [0.4, 0.1])
    assert SETS.nll(torch.randn(1, 3), torch.tensor([SETS.anything])).item() == pytest.approx(0, abs=1e-6)


def test_a_photo_without_finds_lists_only_what_its_annotation_lists():
    made = Annotations(SETS, {"7": (Path("7.jpg"), annotated((10, 10, 50, 50)))}).training([], [])[0]
    assert made.listed == (True, False)
    assert not len(made.said)


def test_a_find_is_in_a_view_as_often_as_its_chance_says(tmp_path):
    Image.new("RGB", (64, 64), "grey").save(tmp_path / "7.png")
    views = TrainingPhotos([photo(str(tmp_path / "7.png"))], (32,), seed=0)
    whole = [kept for epoch in range(1200) if 0 in (kept := views.seen(32, epoch, 0)[2].tolist())]
    shares = [np.mean([k in kept for kept in whole]) for k in range(3)]
    assert shares[0] == 1
    assert shares[1] == pytest.approx(LISTED * 0.4, abs=0.12)  # less where a zoom leaves it out
    assert shares[2] == pytest.approx(LISTED * 0.1, abs=0.06)


def test_what_was_said_belongs_to_its_box(tmp_path):
    Image.new("RGB", (64, 64), "grey").save(tmp_path / "7.png")
    one = photo(str(tmp_path / "7.png"))
    views = TrainingPhotos([one, one._replace(said=one.said[:0], chance=one.chance[:0]), one], (32,), seed=0)
    counts = set()
    for epoch in range(60):
        batch = views[[(epoch, i) for i in range(3)]]
        assert batch.said.shape[0] == len(batch.taught)
        assert bool((batch.rows[batch.taught] == SETS.anything).all())
        for box, said in zip(batch.boxes[batch.taught], batch.said, strict=True):
            share = (box[2:] - box[:2]).prod()
            assert bool(said.argmax() == (2 if share > 0.06 else 1)) or share > 0.05  # a zoom enlarges the shirt
        counts.add(len(batch.taught))
    assert len(counts) > 2


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    data = write_scenes(tmp_path_factory.mktemp("photos"), images=22, photos=20)
    folder = tmp_path_factory.mktemp("run") / "photo"
    train(settings(data), folder)
    return data, folder


@needs_package
def test_a_run_learns_from_what_its_start_finds(run, tmp_path, monkeypatch):
    data, folder = run
    monkeypatch.setattr(taught, "PART", 2)
    monkeypatch.setattr(taught, "ProcessPoolExecutor", _Here)
    monkeypatch.setattr(taught, "SURE", 0.0)
    monkeypatch.setattr(taught, "NAMED", 0.0)
    config = settings(data, continued=True)
    other = replace(config.photo.other, taught=3)
    config = replace(config, start=str(folder / "model"), photo=replace(config.photo, other=other))
    seen = []
    monkeypatch.setattr(
        "scenegpi.training.photo_network.fit_network", lambda _, photos, *__, **___: seen.extend(photos)
    )
    made = load_model(train(config, tmp_path / "on"))
    assert made.vision is not None
    assert [path.name for path in sorted((tmp_path / "on" / "vision" / "taught").iterdir())] == [
        "00000.npz",
        "00001.npz",
    ]
    assert len(seen) == 18 + 4


class _Here:
    """In this process, where constants of a test hold."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, call, *args):
        call(*args)
        return self

    def result(self) -> None:
        pass


@needs_package
def test_photos_are_read_once_and_one_that_cannot_be_read_has_no_finds(run, tmp_path, monkeypatch, caplog):
    data, folder = run
    monkeypatch.setattr(taught, "ProcessPoolExecutor", _Here)
    photos = {"3": data / "images" / "3.png", "broken": tmp_path / "broken.png"}
    photos["broken"].write_bytes(b"no picture")
    first = read_finds(str(folder / "model"), photos, tmp_path / "taught")
    assert not len(first["broken"].boxes)
    monkeypatch.setattr(taught, "_read", None)
    again = read_finds(str(folder / "model"), photos, tmp_path / "taught")
    for name, found in first.items():
        assert found.boxes.shape == (len(found.chance), 4)
        for a, b in zip(found, again[name], strict=True):
            np.testing.assert_array_equal(a, b)
    with pytest.raises(DataError, match=r"00000\.npz: is not what was written for these photos"):
        read_finds(str(folder / "model"), {"3": photos["3"]}, tmp_path / "taught")
