"""The proof's illustration holds the proof's numbers; the architecture shows the shapes of the model's own layer."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from models.model_cases import random_graphs, small_model
from paper.systems.system_cases import small_system
from scenegpi.errors import DataError, GraphError
from scenegpi.models.layout_inputs import ENTITY_WIDTH, PAIR_INPUTS
from scenegpi.paper.figures.architecture import draw_architecture, shapes
from scenegpi.paper.figures.proof import HASH, construct, draw_proof


def words_of(path):
    return "".join(ElementTree.parse(path).getroot().itertext())


def test_every_pair_lies_in_the_row_and_the_column_of_its_buckets():
    found = construct()
    assert found.z.tolist() == [[11, 12, 13], [21, 22, 23], [31, 32, 33]]
    for i in range(3):
        for j in range(3):
            assert found.phi[i, j].tolist() == [found.z[i, j] if bucket == HASH[j] else 0 for bucket in range(5)]
            assert found.m[HASH[i], HASH[j]] == found.z[i, j]
        assert np.array_equal(found.s[i], found.phi[i].sum(0))
        assert np.array_equal(found.alpha[i], np.outer(np.eye(5)[HASH[i]], found.s[i]))
    assert np.count_nonzero(found.m) == 9


def test_the_illustration_shows_them(tmp_path):
    text = words_of(draw_proof(tmp_path / "proof.svg"))
    assert all(f"{name} {k}" in text for k in (1, 2, 3) for name in ("s", "alpha"))
    assert draw_proof(tmp_path / "proof.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(DataError, match=r"\.png or \.svg"):
        draw_proof(tmp_path / "proof.txt")


@pytest.mark.parametrize(("preset", "words"), [("gpi-feature-attention", 0), ("gpi-linguistic", 6)])
def test_shapes_are_those_of_the_model(preset, words, tmp_path):
    model, graph = small_model(preset), random_graphs((4,))[0]
    found = shapes(model, graph)
    assert found.nodes == (4, 5 + ENTITY_WIDTH + words)
    assert found.pairs == (12, 4 + 4 + PAIR_INPUTS + words)
    assert (found.s, found.g) == ((4, 10), (1, 9))
    assert (found.node_labels, found.pair_labels, found.hidden) == ((4, 5), (12, 4), (12, 12))
    text = words_of(draw_architecture(model, graph, tmp_path / "a.svg", "tiny"))
    assert f"12 × {found.pairs[1]}" in text
    assert "tiny: one step of the GPI layer, 4 boxes" in text


@pytest.mark.parametrize("model", [small_model("baseline"), small_system("imp")])
def test_a_model_without_the_layer_has_no_such_picture(model, tmp_path):
    with pytest.raises(GraphError, match="no GPI layer"):
        draw_architecture(model, random_graphs((3,))[0], tmp_path / "a.png")
