"""Layers by themselves as ONNX files: joint node and edge labels of any batch of graphs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import onnx_export.onnx_cases  # noqa: F401 - skips where the extra is missing
from scenegpi.errors import DataError
from scenegpi.gpi import GPILayer, Recurrent, complete_edges
from scenegpi.onnx import export_layer

onnxruntime = pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")


def randomised(module: torch.nn.Module) -> torch.nn.Module:
    torch.manual_seed(1)
    with torch.no_grad():
        for each in module.parameters():
            each.normal_(0, 0.3)
    return module.eval()


def graphs(sizes: list[int], drop: bool, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Edges of graphs, not all of them and in no order if `drop`; and the graph of each node."""
    torch.manual_seed(seed)
    edges = complete_edges(sizes)
    if drop:
        edges = edges[:, torch.randperm(edges.shape[1])[: edges.shape[1] * 2 // 3]]
    return edges, torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))


SIZES = [([4, 3], False), ([0], False), ([1], False), ([2], True), ([12, 0, 1, 5], True), ([30], False)]


@pytest.mark.parametrize(
    ("aggregation", "edge_out", "words"), [("feature", 3, True), ("mean", None, False)], ids=["feature", "mean"]
)
def test_a_layer(tmp_path, aggregation, edge_out, words):
    tables = {"x_table": torch.randn(6, 5), "edge_table": torch.randn(4, 2)} if words else {}
    layer = randomised(GPILayer(7, 4, 5, edge_out, hidden=8, aggregation=aggregation, **tables))
    session = onnxruntime.InferenceSession(export_layer(layer, tmp_path / "layer.onnx"))
    for sizes, drop in SIZES:
        edges, batch = graphs(sizes, drop, seed=2)
        n, e = len(batch), edges.shape[1]
        given = {"x": torch.randn(n, 7), "edge_index": edges, "edge_attr": torch.randn(e, 4)}
        if words:
            given |= {"x_class": torch.randint(6, (n,)), "edge_class": torch.randint(4, (e,))}
        with torch.no_grad():
            wanted = layer(**given, batch=batch, num_graphs=len(sizes))
        found = session.run(None, {name: value.numpy() for name, value in given.items()} | {"counts": np.array(sizes)})
        names = [each.name for each in session.get_outputs()]
        assert names == ["nodes", "edges", "graph"] if edge_out else ["nodes", "graph"]
        for name, value in zip(names, found, strict=True):
            np.testing.assert_allclose(value, getattr(wanted, name), atol=1e-4)


def test_a_recurrent_layer(tmp_path):
    layer = randomised(GPILayer(5 + 6, 3, 5, 3, hidden=8, aggregation="neighbour", gate=True))
    recurrent = Recurrent(layer, steps=3)
    session = onnxruntime.InferenceSession(export_layer(recurrent, tmp_path / "recurrent.onnx"))
    assert [each.name for each in session.get_inputs()] == [
        "node_logits", "edge_index", "edge_logits", "counts", "node_static",
    ]  # fmt: skip
    for sizes, drop in SIZES:
        edges, batch = graphs(sizes, drop, seed=3)
        n, e = len(batch), edges.shape[1]
        given = {
            "node_logits": torch.randn(n, 5),
            "edge_index": edges,
            "edge_logits": torch.randn(e, 3),
            "node_static": torch.randn(n, 6),
        }
        with torch.no_grad():
            wanted = recurrent(**given, batch=batch, num_graphs=len(sizes))
        found = session.run(None, {name: value.numpy() for name, value in given.items()} | {"counts": np.array(sizes)})
        np.testing.assert_allclose(found[0], wanted.nodes[-1], atol=1e-4)
        np.testing.assert_allclose(found[1], wanted.edges[-1], atol=1e-4)


def test_a_recurrent_layer_without_edge_labels_is_refused(tmp_path):
    layer = GPILayer(5, 3, 5, hidden=8, gate=True)
    with pytest.raises(DataError, match="edge_out"):
        export_layer(Recurrent(layer), tmp_path / "no.onnx")
    assert not (tmp_path / "no.onnx").exists()
