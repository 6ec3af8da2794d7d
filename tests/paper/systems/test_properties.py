"""Every compared system: what a new listing changes, what it reads and does not read, batches, gradients, files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from models.model_cases import VOCABULARY, predict_graphs, random_graphs
from paper.systems.system_cases import ALONE, CONTEXT, SWAPPED, SYSTEMS, narrow, relisted_gap, small_system
from scenegpi.errors import OptionError
from scenegpi.features.batch import SceneBatch
from scenegpi.graph import SceneGraph
from scenegpi.models import PRESETS, ModelConfig, build_model, load_model, save_model
from scenegpi.models.systems import KINDS, MODULES, system_module
from scenegpi.options import override, plain
from scenegpi.training.config import LossConfig
from scenegpi.training.losses import scene_loss
from scenegpi.training.recipes import train_config

NAMES = [*SYSTEMS, *SWAPPED]


def loss_of(model, batch):
    out = model(batch)
    return model.network.training_loss(batch, out, scene_loss(out, batch, LossConfig())), out


@pytest.mark.parametrize("task", ["predcls", "sgcls"])
@pytest.mark.parametrize("name", NAMES)
def test_boxes_listed_in_another_order_give_the_same_graph(name, task):
    model = small_system(name)
    assert max(relisted_gap(model, graph, task) for graph in random_graphs((1, 2, 5, 9))) <= 1e-5


def test_a_sequence_model_that_reads_the_list_as_it_is_depends_on_it(monkeypatch):
    monkeypatch.setattr("scenegpi.paper.systems.motifs.reading_order", lambda batch, dist: torch.arange(len(dist)))
    assert relisted_gap(small_system("motifs"), random_graphs((9,))[0], "predcls") > 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_a_loop_over_images(name):
    model = small_system(name)
    graphs = random_graphs((3, 0, 1, 8, 2, 5))
    for given in (True, False):
        together = model(SceneBatch.of(graphs, given_labels=given))
        alone = [model(SceneBatch.of([graph], given_labels=given)) for graph in graphs]
        assert torch.allclose(together.nodes[-1], torch.cat([out.nodes[-1] for out in alone]), atol=1e-5)
        assert torch.allclose(together.edges[-1], torch.cat([out.edges[-1] for out in alone]), atol=1e-5)


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_no_target_is_read_when_a_model_predicts(name, given):
    model = small_system(name)
    batch = SceneBatch.of(random_graphs((5, 7)), given_labels=given)
    other = replace(
        batch,
        labels=(batch.labels + 2) % 5,
        relation_edge=batch.relation_edge.flip(0),
        relation_class=1 + batch.relation_class % 3,
        relation_count=batch.relation_count + 4,
    )
    first, second = model(batch), model(other)
    assert torch.equal(first.nodes[-1], second.nodes[-1])
    assert torch.equal(first.edges[-1], second.edges[-1])


@pytest.mark.parametrize("name", NAMES)
def test_small_and_strange_images_are_finite(name):
    model = small_system(name)
    same = np.array([[10, 10, 40, 40]] * 3 + [[20, 20, 20, 20], [0, 0, 200, 160]], dtype=float)
    strange = SceneGraph(same, [0, 0, 0, 1, 2], VOCABULARY, width=200, height=160)
    for graphs in (random_graphs((0,)), random_graphs((1,)), random_graphs((2, 0)), [strange]):
        batch = SceneBatch.of(graphs)
        out = model(batch)
        assert out.nodes[-1].shape == (len(batch.boxes), 5)
        assert out.edges[-1].shape == (batch.num_edges, 4)
        assert out.edges[-1].isfinite().all()
        training = model.train()
        losses, _ = loss_of(training, batch)
        assert losses.isfinite().all()
        model.eval()


@pytest.mark.parametrize("name", NAMES)
def test_every_weight_gets_a_gradient(name):
    model = small_system(name).train()
    batch = SceneBatch.of(random_graphs((5, 7, 6)), given_labels=False)
    losses, out = loss_of(model, batch)
    weights = torch.arange(5.0), torch.arange(4.0)
    (losses.sum() + (out.nodes[-1] @ weights[0]).sum() + (out.edges[-1] @ weights[1]).sum()).backward()
    trained = {key: each.grad for key, each in model.named_parameters() if each.requires_grad}
    assert [key for key, grad in trained.items() if grad is None or not grad.isfinite().all()] == []
    frozen = {key for key, each in model.named_parameters() if not each.requires_grad}
    assert all(key.startswith("network.reader.baseline.") for key in frozen)
    assert bool(frozen) == ("baseline" in name)


@pytest.mark.parametrize("name", [*CONTEXT, *SWAPPED, *ALONE])
def test_a_third_box_matters_to_context_and_to_nothing_else(name):
    model = small_system(name, counts=False)
    graph = random_graphs((4,), seed=3)[0]
    boxes = graph.boxes.copy()
    boxes[3] += [9, 14, 31, 6]
    pairs = [k for k, (i, j) in enumerate(SceneBatch.of([graph]).edge_index.t().tolist()) if 3 not in (i, j)]
    before, after = (model(SceneBatch.of([each])).edges[-1][pairs] for each in (graph, graph.with_fields(boxes=boxes)))
    gap = float((before.softmax(1) - after.softmax(1)).abs().max().detach())
    assert gap == 0 if name in ALONE else gap > 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_chunks_of_pairs_give_what_the_whole_gives(name, monkeypatch):
    model = small_system(name)
    graphs = random_graphs((9, 4, 6))
    whole = list(predict_graphs(model, graphs, "sgcls"))
    monkeypatch.setattr("scenegpi.models.baseline.CHUNK", 7)
    monkeypatch.setattr("scenegpi.paper.systems.reader.CHUNK", 7)
    for a, b in zip(whole, predict_graphs(model, graphs, "sgcls"), strict=True):
        assert np.abs(a.pair_dist - b.pair_dist).max() <= 1e-5
        assert np.abs(a.label_dist - b.label_dist).max() <= 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_saved_is_loaded(name, tmp_path):
    model = small_system(name)
    save_model(model, tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.config == model.config
    assert f"model: {model.config.system.replace('_', '-')}, a system" in (tmp_path / "m" / "README.md").read_text()
    for a, b in zip(*(predict_graphs(each, random_graphs((4, 6))) for each in (model, again)), strict=True):
        np.testing.assert_allclose(a.pair_dist, b.pair_dist, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_model(name):
    batch = SceneBatch.of(random_graphs((4, 3)))
    first, second, other = (small_system(name, seed)(batch).edges[-1] for seed in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("name", SWAPPED)
def test_before_training_a_context_says_what_its_baseline_says(name, monkeypatch):
    config = replace(narrow(SYSTEMS[name.partition(" on ")[0]]), on_baseline=True)
    # Messages between scores are not layers that give logits.
    monkeypatch.setattr("scenegpi.paper.systems.graph_rcnn.SCORE_STEPS", 0)
    model = build_model(config, VOCABULARY).eval()
    out = model(SceneBatch.of(random_graphs((5,)), given_labels=False))
    assert torch.equal(out.edges[0], out.edges[1])
    assert torch.equal(out.nodes[0], out.nodes[1])


def test_only_a_system_with_context_is_built_on_a_baseline():
    for name in ALONE:
        with pytest.raises(ValueError, match="only a system with context"):
            replace(SYSTEMS[name], on_baseline=True)
    with pytest.raises(ValueError, match="only a system with context"):
        ModelConfig(on_baseline=True)


def test_all_systems_read_by_the_settings_of_the_baseline():
    assert {config.baseline for config in SYSTEMS.values()} == {PRESETS["baseline"].baseline}


def test_a_whole_system_has_the_epochs_and_the_augmentation_of_two_stages():
    gpi, imp = train_config({}), train_config({"preset": "imp"})
    assert imp.stage.epochs == gpi.baseline.epochs + gpi.context.epochs
    assert imp.stage.augment == gpi.context.augment
    on_top = train_config({"preset": "imp", "model": {"on_baseline": True}})
    assert on_top.stage == on_top.context


@pytest.mark.parametrize("name", NAMES)
def test_no_system_keeps_running_statistics(name):
    """The running mean of a run averages weights only: what a batch norm gathers would be lost."""
    kinds = {type(module).__name__ for module in small_system(name).modules()}
    assert not [kind for kind in kinds if "BatchNorm" in kind]


@pytest.mark.parametrize("name", SYSTEMS)
def test_settings_are_read_back_whatever_kind_they_are(name):
    written = plain(SYSTEMS[name])
    assert written["network"]["kind"] in KINDS
    assert override(ModelConfig(), written, "model") == SYSTEMS[name]
    assert override(PRESETS["gpi-linguistic"], written, "model") == SYSTEMS[name]


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ({"kind": "os"}, "model.network.kind: 'os' is not one of gpi, lu, imp"),
        ({"kind": 3}, "model.network.kind: 3 is not one of"),
        ({"hidden": 8}, "model.network.kind: missing"),
        ({"kind": "imp", "hidden": 8}, "model.network.hidden: no such setting"),
        ({"kind": "imp", "width": 0}, "model.network.width: 0 is not between"),
        ([], "model.network: expected a table"),
    ],
)
def test_a_network_of_no_known_kind_is_refused_by_its_field(network, message):
    with pytest.raises(OptionError, match=message):
        override(ModelConfig(), {"network": network}, "model")


def test_a_preset_is_found_in_the_module_of_its_name():
    for name, kind in MODULES.items():
        assert name in system_module(kind).PRESETS
    for kind in KINDS:
        assert set(system_module(kind).PRESETS) == {name for name, home in MODULES.items() if home == kind}
