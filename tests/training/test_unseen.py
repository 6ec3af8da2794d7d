"""Labels of training photos as if the network had not seen them: blurred until they are right as often."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.training import unseen
from scenegpi.training.unseen import MOST, STEPS, blur_as_unseen, blurred, box_logits, fraction_right
from scenegpi.vocabulary import Vocabulary

VOCABULARY = Vocabulary(("edge", "smooth"))
SHARP = np.tile(np.array([0, 255], np.uint8), 32)


def stripes(folder, name, contrast):
    """A photo of stripes, one pixel wide: the softer, the lower the contrast."""
    row = (127 + (SHARP.astype(float) - 127) * contrast).astype(np.uint8)
    Image.fromarray(np.repeat(np.repeat(row[None, :, None], 64, 0), 3, 2)).save(folder / name)
    return folder / name, SceneGraph([[0, 0, 64, 64]], [0], VOCABULARY, width=64, height=64)


def by_contrast(found, least=5.0):
    """A network that sees an edge where the standard deviation of the pixels is at least this."""
    sharp = float(found.pixels.astype(float).std()) >= least
    return torch.tensor([[1.0, 0.0]] if sharp else [[0.0, 1.0]])


@pytest.fixture
def network(monkeypatch):
    monkeypatch.setattr(unseen, "box_logits", lambda vision, photo, graph: by_contrast(photo))
    return SimpleNamespace()


def test_the_blur_makes_seen_photos_as_hard_as_unseen_ones(tmp_path, network):
    seen = [stripes(tmp_path, f"seen{k}.png", (k + 1) / 20) for k in range(20)]
    other = [stripes(tmp_path, f"other{k}.png", 1.0 if k % 2 else 0.0) for k in range(10)]
    assert fraction_right(network, other) == 0.5
    assert fraction_right(network, seen) == 1.0
    blur = blur_as_unseen(network, seen, other)
    assert 0 < blur < MOST
    finest = MOST / 2**STEPS
    assert fraction_right(network, seen, blur - finest) >= 0.5 >= fraction_right(network, seen, blur + finest)


def test_photos_that_are_named_no_better_than_unseen_ones_stay_sharp(tmp_path, network):
    seen = [stripes(tmp_path, "seen.png", 0.0)]
    other = [stripes(tmp_path, "other.png", 1.0)]
    assert blur_as_unseen(network, seen, other) == 0.0
    assert blur_as_unseen(network, other, other) == 0.0


def test_at_most_a_sample_is_read_and_broken_photos_do_not_count(tmp_path, network, monkeypatch):
    pairs = [stripes(tmp_path, f"{k}.png", 1.0 if k < 6 else 0.0) for k in range(12)]
    assert fraction_right(network, pairs) == 0.5
    monkeypatch.setattr(unseen, "SAMPLE", 4)
    assert fraction_right(network, pairs) == 0.5  # 0, 3, 6, 9
    pairs[0][0].write_bytes(b"no photo")
    assert fraction_right(network, pairs) == pytest.approx(1 / 3)
    assert fraction_right(network, []) == 0.0


def test_a_blur_is_a_fraction_of_the_sides(tmp_path):
    wide = np.zeros((100, 400, 3), np.uint8)
    wide[50, 200] = 255
    Image.fromarray(wide).save(tmp_path / "wide.png")
    assert (blurred(tmp_path / "wide.png", 0.0).pixels == wide).all()
    soft = blurred(tmp_path / "wide.png", 0.02).pixels[..., 0].astype(float)
    weights = soft / soft.sum()
    across, down = weights.sum(0), weights.sum(1)
    spread = [
        np.sqrt((each * (np.arange(len(each)) - middle) ** 2).sum()) for each, middle in ((across, 200), (down, 50))
    ]
    assert spread[0] > 3 * spread[1]
    with pytest.raises(DataError):
        blurred(tmp_path / "none.png", 0.1)


def test_boxes_are_read_in_a_blurred_photo_as_in_the_photo(tmp_path):
    path, graph = stripes(tmp_path, "photo.png", 1.0)
    seen = []

    def extractor(pixels, boxes):
        seen.append((pixels.shape, boxes.tolist()))
        return torch.zeros(1, 3)

    vision = SimpleNamespace(extractor=extractor, head=lambda features, geometry: features)
    for blur in (0.0, 0.01):
        box_logits(vision, blurred(path, blur), graph.replace(width=128, height=128, boxes=[[0, 0, 128, 64]]))
    assert seen[0] == seen[1] == ((64, 64, 3), [[0.0, 0.0, 64.0, 32.0]])
