r"""The scene-graph predictor of the paper: a recurrent GPI layer over the distributions of a baseline.

.. math::
    z_i^{(t)} &= [\text{read}(y_i^{(t)}), \text{box}_i, \text{counts}_i, \text{word}(\arg\max y_i^{(t)})] \\
    z_{ij}^{(t)} &= [\text{read}(y_{ij}^{(t)}), \text{read}(y_{ji}^{(0)}), \text{geometry}_{ij},
      \text{word}(\arg\max y_{ij}^{(t)})] \\
    y^{(t+1)} &= \rho(z^{(t)}, s^{(t)}, g^{(t)}) + f^{(t)} y^{(t)}

y^(0) are the logits of the baseline. i is the subject, which aggregates
over its objects j. The outputs of all steps are given, the baseline's first.

With `read_again` the baseline f reads the pairs once more after T steps, with the labels that the layer corrected,
and the layer's changes to the pairs are added: :math:`y_{ij} = f_{ij}(y^{(T)}) + y_{ij}^{(T)} - y_{ij}^{(0)}`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import log

import torch
from torch import Tensor, nn

from scenegpi.features.batch import SceneBatch
from scenegpi.gpi import MLP, GPILayer, Recurrent
from scenegpi.gpi.dropout import dropout
from scenegpi.models.baseline import Baseline, FirstStage, PairOutput, end_in_zero
from scenegpi.models.config import ContextConfig, ModelConfig
from scenegpi.models.layout_inputs import COLUMNS, ENTITY_WIDTH, PAIR_INPUTS
from scenegpi.models.scene_network import SceneLogits, SceneNetwork
from scenegpi.pairs import edge_number

FLOOR = 1e-3
RHO_LAYERS = 2
_OPEN_GATE = 4.0


class SGP(SceneNetwork):
    """Baseline and context, C labels and P predicates; `label_words` (C, w) and `predicate_words` (1 + P, w)."""

    def __init__(
        self,
        config: ModelConfig,
        context: ContextConfig,
        labels: int,
        predicates: int,
        label_words: Tensor | None = None,
        predicate_words: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.config, self.context = config, context
        self.baseline = Baseline(config.baseline, labels, predicates).requires_grad_(False)
        classes = 1 + predicates
        layer = GPILayer(
            labels + ENTITY_WIDTH,
            classes + classes + PAIR_INPUTS,
            labels,
            classes,
            hidden=context.hidden,
            phi_dim=context.phi,
            alpha_dim=context.alpha,
            rho_hidden=(context.hidden,) * RHO_LAYERS,
            aggregation=context.aggregation,
            strict=context.strict,
            gate=True,
            flow="target_to_source",
            x_table=label_words,
            edge_table=predicate_words,
        )
        _start_at_input(layer, context.dropout)
        self.recurrent = Recurrent(layer, context.steps, Read(context.input_dropout))

    @property
    def front(self) -> Baseline:
        return self.baseline

    @property
    def first_stage_network(self) -> Baseline:
        return self.baseline

    def forward(self, batch: SceneBatch) -> SceneLogits:
        """1 + steps outputs: (N, C) and (E, 1 + P) logits each."""
        nodes, pairs, entity = self._first_stage(batch)
        read, start = self._static(batch, pairs), pairs.logits
        static = read(None) if self.training else read  # dropout is the same in all steps
        entity = dropout(entity, self.context.input_dropout, self.training)
        out = self.recurrent(
            nodes,
            batch.edge_index,
            start,
            batch.batch,
            node_static=entity,
            edge_static=static,
            num_graphs=batch.num_graphs,
        )
        edges = list(out.edges)
        if self.context.read_again:
            edges[-1] = self._read_again(batch, out.nodes[-1]) + (edges[-1] - start)
        return SceneLogits([nodes, *out.nodes], [start, *edges])

    def _static(self, batch: SceneBatch, pairs: PairOutput) -> Callable[[Tensor | None], Tensor]:
        """What z_ij holds besides the distribution: edges (m,), None for all -> (m, ...)."""
        p, training, backward = self.context.input_dropout, self.training, reverse_edges(batch)

        def static(edges: Tensor | None) -> Tensor:
            reverse = scaled_log(pairs.logits.index_select(0, _rows(backward, edges)))
            # Information on duplicates is not dropped: it decides which comes first.
            geometry, twin = _rows(pairs.geometry, edges).split([PAIR_INPUTS - COLUMNS, COLUMNS], 1)
            return torch.cat([dropout(reverse, p, training), dropout(geometry, p, training), twin], 1)

        return static

    def _read_again(self, batch: SceneBatch, nodes: Tensor) -> Tensor:
        """The baseline's logits of the pairs, (E, 1 + P), given the labels of nodes (N, C); certain labels are kept."""
        certain = batch.label_dist.amax(1, keepdim=True) == 1
        dist = torch.where(certain, batch.label_dist, nodes.detach().softmax(1).to(batch.label_dist.dtype))
        return self._first_stage(replace(batch, label_dist=dist)).pairs.logits

    def _first_stage(self, batch: SceneBatch) -> FirstStage:
        """Freezes the baseline, which is trained before, as in the paper."""
        self.baseline.eval()
        with torch.no_grad():
            return self.baseline.first_stage(batch, leave_out=self.training)


class Read(nn.Module):
    """How the layer reads a distribution: logits (M, K) -> features (M, K)."""

    def __init__(self, input_dropout: float) -> None:
        super().__init__()
        self.dropout = input_dropout

    def forward(self, logits: Tensor) -> Tensor:
        return dropout(scaled_log(logits), self.dropout, self.training)


def scaled_log(logits: Tensor) -> Tensor:
    """1 - log p / log FLOOR, at least 0: 1 if certain, 0 if no likelier than FLOOR; (M, K)."""
    return (1 - logits.log_softmax(1) / log(FLOOR)).clamp_min(0)


def _rows(values: Tensor, rows: Tensor | None) -> Tensor:
    return values if rows is None else values.index_select(0, rows)


def reverse_edges(batch: SceneBatch) -> Tensor:
    """(E,) the edge (j, i) of each edge (i, j)."""
    i, j = batch.edge_index
    image = batch.batch[i]
    first, size = batch.ptr[image], (batch.ptr[1:] - batch.ptr[:-1])[image]
    return batch.edge_ptr[image] + edge_number(j - first, i - first, size)


def _start_at_input(layer: GPILayer, dropout: float) -> None:
    """Initialises rho to 0 with open forget gates, so that the layer passes its input through."""
    for network in (layer.rho, layer.edge_rho):
        if isinstance(network, MLP):
            network.dropout = dropout
            end_in_zero(network)
    for gate in (layer.node_gate, layer.edge_gate):
        if gate is not None:
            nn.init.zeros_(gate.weight)
            nn.init.constant_(gate.bias, _OPEN_GATE)
