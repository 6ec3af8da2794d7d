"""The four networks: sizes, shapes, and which of them depend on the order of the nodes."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scenegpi.paper.labelling.experiment import order_dependence
from scenegpi.paper.labelling.graphs import Task
from scenegpi.paper.labelling.models import (
    COMPARED,
    GPI,
    PARAMETERS,
    FullyConnected,
    LSTMs,
    ModelName,
    build,
    count_parameters,
    describe,
)


@pytest.mark.parametrize("nodes", [10, 30])
@pytest.mark.parametrize("name", [*COMPARED, "gpi-edges"])
def test_parameter_counts_are_comparable(name: ModelName, nodes: int) -> None:
    assert count_parameters(build(name, Task(nodes=nodes))) == pytest.approx(PARAMETERS, rel=0.05)


def test_sizes_are_those_of_the_paper() -> None:
    lstm, fc = build("lstm", Task()), build("fc", Task())
    assert isinstance(lstm, LSTMs)
    assert isinstance(fc, FullyConnected)
    assert lstm.neighbours.hidden_size == lstm.nodes.hidden_size == 200
    assert [layer.out_features for layer in fc.network.layers] == [1000, 1000, 100]
    assert "2 x 1000" in describe("fc", Task())
    assert count_parameters(fc) == PARAMETERS


@given(seed=st.integers(0, 2**31), nodes=st.integers(1, 9), form=st.sampled_from(["", "strict", "edges_only"]))
@settings(max_examples=25, deadline=None)
def test_gpi_networks_do_not_depend_on_the_order(seed: int, nodes: int, form: str) -> None:
    torch.manual_seed(seed)
    model = GPI(3, nodes, hidden=24, strict=form == "strict", edges_only=form == "edges_only")
    gap, _ = order_dependence(model, Task(nodes=nodes, sets=3).sample(4, seed), trials=3, seed=seed)
    assert gap < 1e-5


@pytest.mark.parametrize("name", ["lstm", "fc"])
def test_the_others_do(name: ModelName) -> None:
    torch.manual_seed(0)
    task = Task(nodes=6, sets=3)
    model = LSTMs(3, 6, 16, (16,)) if name == "lstm" else FullyConnected(3, 6, 6, (16,))
    gap, _ = order_dependence(model, task.sample(8, 0))
    assert gap > 1e-4


def test_order_dependence_counts_changed_labels_and_leaves_the_model_alone() -> None:
    torch.manual_seed(0)
    model = FullyConnected(3, 6, 6, (16,))
    state = torch.random.get_rng_state()
    _, changed = order_dependence(model, Task(nodes=6, sets=3).sample(30, 0))
    assert 0 < changed <= 1
    assert torch.equal(state, torch.random.get_rng_state())
    assert next(model.parameters()).dtype == torch.float32


@pytest.mark.parametrize("nodes", [1, 2, 7])
@pytest.mark.parametrize("name", [*COMPARED, "gpi-edges"])
def test_scores_have_a_row_for_every_node(name: ModelName, nodes: int) -> None:
    task = Task(nodes=nodes, sets=2)
    small = {
        "gpi": GPI(2, nodes, 8),
        "gpi-strict": GPI(2, nodes, 8, strict=True),
        "lstm": LSTMs(2, nodes, 8, (8,)),
        "fc": FullyConnected(2, nodes, nodes, (8,)),
        "gpi-edges": GPI(2, nodes, 8, edges_only=True),
    }[name]
    assert small(task.sample(3, 0)).shape == (3, nodes, nodes)


def test_lstm_reads_every_partner_once() -> None:
    torch.manual_seed(0)
    graphs = Task(nodes=4, sets=4).sample(1, 3)
    model = LSTMs(4, 4, 8, (8,))
    seen: list[torch.Tensor] = []
    model.neighbours.register_forward_hook(lambda _module, args, _out: seen.append(args[0]))
    model(graphs)
    (read,) = seen
    assert read.shape == (3, 4, 9)
    for i in range(4):
        partners = [j for j in range(4) if j != i]
        expected = {(int(graphs.sets[0, j]), bool(graphs.adjacency[0, i, j])) for j in partners}
        found = {(int(row[5:].argmax()), bool(row[4])) for row in read[:, i]}
        assert found == expected
        assert all(int(row[:4].argmax()) == int(graphs.sets[0, i]) for row in read[:, i])


def test_only_the_fully_connected_network_is_bound_to_one_size() -> None:
    larger = Task(nodes=7, sets=2).sample(2, 0)
    for model in (GPI(2, 5, 8), GPI(2, 5, 8, strict=True), GPI(2, 5, 8, edges_only=True), LSTMs(2, 5, 8, (8,))):
        assert model(larger).shape == (2, 7, 5)
    with pytest.raises(ValueError, match="5 nodes can't read graphs of 7"):
        FullyConnected(2, 5, 5, (8,))(larger)
