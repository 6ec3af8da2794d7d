"""Everyday names beyond the labels: they take a share of what stands for them, and are summed back exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from scenegpi.features.arrays import SceneArrays
from scenegpi.graph import SceneGraph
from scenegpi.models.build import build_model, folded, unfolded
from scenegpi.models.config import ModelConfig
from scenegpi.vision.config import PHOTO, HeadConfig
from scenegpi.vision.model import VisionModel
from scenegpi.vocabulary import Vocabulary

LABELS = Vocabulary(("man", "screen", "chair", "food"), ("on", "has"))
EYES = replace(PHOTO, everyday=True, features=replace(PHOTO.features, photo_size=64), head=HeadConfig(hidden=8))


@pytest.fixture(scope="module")
def vision() -> VisionModel:
    torch.manual_seed(0)
    vision = VisionModel(EYES, LABELS).eval()
    torch.nn.init.normal_(vision.head.everyday.weight)
    torch.nn.init.normal_(vision.head.network[-1].weight)
    return vision


def said(vision: VisionModel) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(1)
    width = vision.head.mean.shape[0]
    features, geometry = torch.randn(5, width, generator=rng), torch.rand(5, 16, generator=rng)
    return vision.head.distribution(features, geometry), vision.head.said(features, geometry)[0]


def test_names_beyond_the_labels_are_known(vision):
    assert vision.vocabulary.objects[:4] == LABELS.objects
    assert {"tv", "couch", "cake"} <= set(vision.vocabulary.objects)
    assert [LABELS.objects[k] for k in vision.stands[4:]].count("food") == 4


def test_folded_they_are_the_labels_as_probable_as_ever(vision):
    dist, labels = said(vision)
    torch.testing.assert_close(dist.sum(1), torch.ones(5))
    torch.testing.assert_close(vision.folded(dist), labels.softmax(1))
    assert bool((dist[:, 4:] > 0).all())


def test_logits_of_names_have_the_same_softmax(vision):
    rng = torch.Generator().manual_seed(1)
    width = vision.head.mean.shape[0]
    features, geometry = torch.randn(5, width, generator=rng), torch.rand(5, 16, generator=rng)
    torch.testing.assert_close(vision.head(features, geometry).softmax(1), said(vision)[0])


def test_a_model_shares_out_what_its_network_says_of_a_label(vision):
    dist = said(vision)[0].detach().numpy()
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
