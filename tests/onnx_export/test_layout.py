"""An exported model gives what torch gives: presets, any number of boxes, any order of them."""

from __future__ import annotations

import json
from unittest.mock import Mock

import numpy as np
import pytest
import torch

import onnx_export.onnx_cases as cases
from models.model_cases import VOCABULARY, random_graphs
from scenegpi.errors import DataError
from scenegpi.features.arrays import SceneArrays
from scenegpi.models import PRESETS
from scenegpi.pairs import complete_pairs

PLAIN = tuple(name for name in PRESETS if name != "gpi-linguistic")  # "everything" is that and more
EXPORTED = ("imp", "motifs-no-context", "transformer", "pe-net", "lu", "graph-rcnn on baseline")


@pytest.mark.parametrize("name", ["motifs", "vctree", "motifs on baseline", "pixel2graph-boxes"])
def test_a_system_that_cannot_be_exported_is_refused_in_one_line(name):
    with pytest.raises(DataError, match="this system cannot be exported") as error:
        cases.exported_bytes(name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", [*PLAIN, *EXPORTED, "everything", "given"])
def test_an_exported_model_is_equal_to_torch(name):
    """All of one model in one test: processes that share the tests export it once."""
    for task in ("predcls", "sgcls"):
        for n in (0, 1, 60):
            cases.assert_equal(name, random_graphs((n,), seed=n), task)
        cases.assert_equal(name, random_graphs((0, 5, 1, 12, 0, 2, 1), seed=3), task)
    run = cases.exported(name).distributions
    graph = random_graphs((9,), seed=4)[0]
    order = np.random.default_rng(5).permutation(9)
    nodes, edges = run(SceneArrays.of([graph], False), "sgcls")
    moved_nodes, moved_edges = run(SceneArrays.of([graph.permute(order)], False), "sgcls")
    place = {tuple(pair): k for k, pair in enumerate(complete_pairs(np.array([9])).T.tolist())}
    rows = [place[order[i], order[j]] for i, j in place]
    np.testing.assert_allclose(moved_nodes, nodes[order], atol=1e-5)
    np.testing.assert_allclose(moved_edges, edges[rows], atol=1e-5)
    # Boxes that tie in every count, and identical ones.
    boxes, dist = graph.boxes.copy(), graph.label_dist.copy()
    boxes[1], boxes[2], dist[1] = boxes[0], boxes[0] + 10, dist[0]
    cases.assert_equal(name, [graph.replace(boxes=boxes, label_dist=dist)], "sgcls")


def test_the_file_says_what_it_is():
    import onnx

    data, found = cases.exported_bytes("baseline"), cases.exported("baseline")
    assert found.vocabulary == VOCABULARY
    for mine, theirs in zip(found.relation_counts, cases.model("baseline").relation_counts, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    proto = onnx.load_from_string(data)
    onnx.checker.check_model(proto, full_check=True)
    about = {entry.key: entry.value for entry in proto.metadata_props}
    assert json.loads(about["vocabulary"])["objects"] == list(VOCABULARY.objects)
    assert {"scenegpi_version", "calibration"} <= set(about)
    assert about["opset"] == str(proto.opset_import[0].version)
    assert not any(each.external_data for each in proto.graph.initializer)
    shapes = {
        each.name: [dim.dim_param or dim.dim_value for dim in each.type.tensor_type.shape.dim]
        for each in (*proto.graph.input, *proto.graph.output)
    }
    assert shapes["boxes"] == ["boxes", 4]
    assert shapes["sizes"] == ["images", 2]
    assert shapes["relations"] == ["pairs", 4]
    assert shapes["pairs"] == [2, "pairs"]
    scenes = SceneArrays.of(random_graphs((3, 0, 1, 5)))
    given = {name: getattr(scenes, name) for name in ("boxes", "sizes", "label_dist", "counts")}
    (pairs,) = found._session.run(["pairs"], given | {"labels_given": np.array(True)})
    np.testing.assert_array_equal(pairs, scenes.edge_index)  # in the order of the whole house


def test_a_model_in_training_goes_on_training(monkeypatch):
    monkeypatch.setattr(torch.onnx, "export", Mock(side_effect=torch.onnx.OnnxExporterError("stop")))
    model = cases.small_model("baseline").train()
    with pytest.raises(DataError, match="torch cannot export it"):
        cases.model_bytes(model)
    assert model.training
    assert model.network.training
