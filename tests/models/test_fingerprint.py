"""A model recognises its training images, and no others, whatever file they come from."""

from __future__ import annotations

import os

import numpy as np
import pytest

from models.model_cases import VOCABULARY, random_graphs, small_model
from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.models import load_model, save_model
from scenegpi.models.fingerprint import Fingerprint, image_key
from scenegpi.vocabulary import Vocabulary

GRAPHS = random_graphs((4, 6, 3, 8, 2, 5) * 20, seed=1)


def shuffled(graph: SceneGraph) -> SceneGraph:
    """The same image as another file might tell of it: other order of boxes and of names, no id, no relations."""
    order = np.random.default_rng(0).permutation(len(graph))
    words = Vocabulary(VOCABULARY.objects[::-1], ["anything"])
    labels = [words.object_index[name] for name in graph.names]
    jitter = np.random.default_rng(1).uniform(-0.2, 0.2, graph.boxes.shape)
    return SceneGraph(np.rint(graph.boxes)[order] + jitter, np.array(labels)[order], words)


def test_training_images_are_recognised_and_others_are_not():
    seen, other = GRAPHS[:60], GRAPHS[60:]
    found = Fingerprint.of(seen)
    assert len(found) == 60
    assert found.count(map(shuffled, seen)) == 60
    assert found.count(other) == 0
    assert found.count([GRAPHS[0], GRAPHS[100], GRAPHS[59]]) == 2
    assert Fingerprint(found | Fingerprint.of(other)).count(GRAPHS) == 120


@pytest.mark.parametrize("change", ["box", "label", "fewer"])
def test_what_a_key_depends_on(change):
    graph = GRAPHS[1]
    boxes, labels = graph.boxes.copy(), graph.labels.copy()
    if change == "box":
        boxes[2, 3] += 1
    elif change == "label":
        labels[0] = (labels[0] + 1) % len(VOCABULARY.objects)
    kept = slice(1 if change == "fewer" else 0, None)
    assert image_key(SceneGraph(boxes[kept], labels[kept], VOCABULARY)) != image_key(graph)


def test_an_image_without_boxes_is_never_known():
    empty = SceneGraph(np.zeros((0, 4)), [], VOCABULARY)
    assert len(Fingerprint.of([empty])) == 0
    assert not Fingerprint.of([empty]).seen(empty)
    assert not Fingerprint.of(GRAPHS).seen(empty)


def test_a_model_carries_its_own(tmp_path):
    model = small_model("baseline")
    save_model(model, tmp_path / "m")
    assert load_model(tmp_path / "m").trained_on is None
    model.trained_on = Fingerprint.of(GRAPHS[:9])
    save_model(model, tmp_path / "m", overwrite=True)
    assert (tmp_path / "m" / "trained_on.bin").stat().st_size == 36
    assert load_model(tmp_path / "m").trained_on == model.trained_on
    model.trained_on = None
    save_model(model, tmp_path / "m", overwrite=True)
    assert load_model(tmp_path / "m").trained_on is None


@pytest.mark.parametrize("spoil", ["odd", "order", "twice", "large", "fifo", "folder"])
def test_a_hostile_file_is_one_line(spoil, tmp_path):
    save_model(small_model("baseline"), tmp_path / "m")
    path = tmp_path / "m" / "trained_on.bin"
    if spoil == "odd":
        path.write_bytes(b"12345")
    elif spoil == "order":
        path.write_bytes(np.array([5, 4], "<u4").tobytes())
    elif spoil == "twice":
        path.write_bytes(np.array([5, 5], "<u4").tobytes())
    elif spoil == "large":
        with path.open("wb") as handle:
            handle.truncate(1 << 34)
    elif spoil == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(DataError, match=r"trained_on\.bin") as caught:
        load_model(tmp_path / "m")
    assert "\n" not in str(caught.value)
