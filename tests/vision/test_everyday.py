"""Everyday names beyond the labels: a label is divided among them, and they are summed back exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from scenegpi.features.arrays import SceneArrays
from scenegpi.graph import SceneGraph
from scenegpi.models.build import build_model, folded, unfolded
from scenegpi.models.config import ModelConfig
from scenegpi.vision.model import VisionModel
from scenegpi.vocabulary import Vocabulary
from vision.vision_cases import TINY_EYES

LABELS = Vocabulary(("man", "screen", "chair", "food"), ("on", "has"))
EYES = replace(TINY_EYES, everyday=True)


@pytest.fixture(scope="module")
def vision() -> VisionModel:
    torch.manual_seed(0)
    return VisionModel(EYES, LABELS).eval()


def opinions(vision: VisionModel) -> tuple[torch.Tensor, torch.Tensor]:
    """Logarithms of what head and second look say of five boxes."""
    rng = torch.Generator().manual_seed(1)
    return tuple(torch.randn(5, n, generator=rng).log_softmax(1) for n in (4, len(vision.names)))


def test_names_beyond_the_labels_are_known(vision):
    assert vision.vocabulary.objects[:4] == LABELS.objects
    assert {"tv", "couch", "cake"} <= set(vision.vocabulary.objects)
    assert [LABELS.objects[k] for k in vision.stands[4:]].count("food") == 4


def test_a_label_is_divided_among_its_names_and_summed_back_exactly(vision):
    head, look = opinions(vision)
    dist = vision.divided(head, look)
    torch.testing.assert_close(dist.sum(1), torch.ones(5))
    torch.testing.assert_close(vision.folded(dist), head.exp())
    whole = vision.folded(look.exp())[:, vision.stands]
    torch.testing.assert_close(dist / vision.folded(dist)[:, vision.stands], look.exp() / whole)


def test_a_second_look_names_boxes_in_any_order(vision):
    rng = np.random.default_rng(0)
    photo = rng.integers(0, 256, (48, 80, 3), dtype=np.uint8)
    low = rng.uniform(0, 40, (6, 2))
    graph = SceneGraph(np.hstack([low, low + 8]), np.zeros(6, int), LABELS, width=80, height=48)
    wide = VisionModel(EYES, LABELS).eval()
    wide.load_state_dict(vision.state_dict())
    torch.nn.init.normal_(wide.backbone.look.name.weight)
    dist, turned = wide.label_dist(photo, graph), wide.label_dist(photo, graph.permute(np.arange(6)[::-1]))
    np.testing.assert_allclose(dist[::-1], turned, atol=1e-5)
    assert dist.shape == (6, len(wide.names))
    assert not np.allclose(dist, vision.label_dist(photo, graph), atol=1e-3)


def test_a_model_shares_out_what_its_network_says_of_a_label(vision):
    dist = vision.divided(*opinions(vision)).numpy()
    stands = vision.stands.numpy()
    graph = SceneGraph(
        np.tile([0.0, 0, 9, 9], (5, 1)), dist.argmax(1), vision.vocabulary, label_dist=dist, width=9, height=9
    )
    scenes = SceneArrays.of([graph], given_labels=False)
    plain = folded(scenes, stands, LABELS)
    np.testing.assert_allclose(plain.label_dist, vision.folded(torch.from_numpy(dist)).numpy(), atol=1e-6)
    np.testing.assert_allclose(unfolded(plain.label_dist, dist, plain.label_dist, stands), dist, atol=1e-6)
    answer = np.full((5, 4), 0.25, dtype=np.float32)
    shared = unfolded(answer, dist, plain.label_dist, stands)
    np.testing.assert_allclose(shared.sum(1), 1, atol=1e-5)
    silent = unfolded(answer, np.zeros_like(dist), np.zeros((5, 4), np.float32), stands)
    np.testing.assert_allclose(silent[:, :4], answer)  # a label that nothing was said of keeps its name


def test_a_model_speaks_names_or_its_labels_alone(vision):
    torch.manual_seed(0)
    model = build_model(ModelConfig(vision=EYES), LABELS).eval()
    plain = model.labels_only()
    assert model.vocabulary.objects == vision.vocabulary.objects
    assert plain.vocabulary == LABELS
    assert model.vocabulary.objects == vision.vocabulary.objects  # the model itself is not changed
    assert next(plain.parameters()) is next(model.parameters())
    graph = SceneGraph(np.array([[0.0, 0, 9, 9], [2, 2, 5, 5]]), [0, 3], LABELS, width=9, height=9)
    wide = graph.with_fields(vocabulary=model.vocabulary)
    given = [each.distributions(SceneArrays.of([g]), "predcls") for each, g in ((plain, graph), (model, wide))]
    np.testing.assert_allclose(given[0][1], given[1][1], atol=1e-6)
