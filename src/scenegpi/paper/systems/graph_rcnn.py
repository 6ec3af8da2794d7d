r"""Graph R-CNN (Yang et al. 2018): proposed pairs, and an attentional graph convolution over boxes and pairs.

.. math::
    z_i &\leftarrow \text{ReLU}\big(z_i + \sum_j \alpha_{ij} W_s z_j + \sum_j \beta_{ij} W_1 z_{ij}
      + \sum_j \gamma_{ji} W_2 z_{ji}\big) \\
    z_{ij} &\leftarrow \text{ReLU}(z_{ij} + W_3 z_i + W_4 z_j), \qquad
    \alpha_{ij} = \text{softmax}_j\, w^\top \text{ReLU}(W_a [z_i, z_j])

and in the same way for beta and gamma. A second convolution over the scores of labels and predicates uses the same
attention; in PredCls that is where the pairs read the labels. Attention is that of the paper's text; the authors' code
averages.

Pairs that were not proposed are "no relation", behind every pair that was; they learn by the proposals' loss alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from scenegpi.features.batch import SceneBatch
from scenegpi.gpi.dropout import dropout
from scenegpi.gpi.networks import MLP
from scenegpi.gpi.segments import segment_softmax, segment_sum
from scenegpi.models.config import ModelConfig
from scenegpi.models.layout_inputs import BOX_WIDTH, ENTITY_WIDTH
from scenegpi.models.scene_network import SceneLogits
from scenegpi.models.sgp import scaled_log
from scenegpi.paper.systems.reader import Reading
from scenegpi.paper.systems.system import DROPOUT, Answer, System, SystemConfig

PROPOSAL_WIDTH = 64
KEPT = 128
"""Most pairs that are kept per image."""
FEATURE_STEPS, SCORE_STEPS = 2, 2
"""Steps of the graph convolutions over features and over scores."""
LOWEST, BEHIND = -70.0, 5.0
"""Log-probabilities below this are 0 for a ranking; pairs that are not proposed come this far behind the others."""


class GraphRcnn(System):
    """Proposals, graph convolution over features, graph convolution over scores."""

    def __init__(self, model: ModelConfig, config: GraphRcnnConfig, labels: int, predicates: int) -> None:
        super().__init__(model, labels, predicates)
        d, classes = config.width, 1 + predicates
        self.proposals = RelationProposals(labels, PROPOSAL_WIDTH)
        self.box = nn.Linear(self.reader.node_width, d)
        self.union = MLP([self.reader.pair_width], [d], d, DROPOUT)
        self.attention = nn.ModuleList(Attention(d) for _ in range(3))
        self.features = Messages(d, d, relu=False)
        self.node_out, self.pair_out = nn.Linear(d, labels), nn.Linear(d, classes)
        self.scores = Messages(labels, classes, relu=True)

    def answer(self, reading: Reading) -> Answer:
        related = self.proposals(reading)
        kept = kept_pairs(related.detach(), reading.batch, KEPT)
        if self.training:
            kept[reading.batch.relation_edge] = True
        ends = reading.batch.edge_index[:, kept]
        boxes = self.box(reading.nodes).relu()
        pairs = torch.cat([self.union(reading.pairs(some)[kept[some]]).relu() for some in reading.chunks()])
        weights = self._weights(reading, boxes, pairs, ends)
        for _ in range(FEATURE_STEPS):
            to_boxes, to_pairs = self.features(reading, boxes, pairs, ends, weights)
            boxes, pairs = (boxes + sum(to_boxes)).relu(), (pairs + sum(to_pairs)).relu()
            weights = self._weights(reading, boxes, pairs, ends)
        boxes, pairs = (dropout(each, DROPOUT, self.training) for each in (boxes, pairs))
        nodes, logits = self.node_out(boxes), self.pair_out(pairs)
        certain = reading.certain[:, None]
        for _ in range(SCORE_STEPS):
            labels = scaled_log(torch.where(certain, reading.node_logits, reading.node_logits + nodes))
            to_boxes, to_pairs = self.scores(reading, labels, scaled_log(logits), ends, weights)
            nodes, logits = nodes + sum(to_boxes) / len(to_boxes), logits + sum(to_pairs) / len(to_pairs)
        return Answer(nodes, self._all(reading, logits, kept, related), {"related": related})

    def _weights(self, reading: Reading, boxes: Tensor, pairs: Tensor, ends: Tensor) -> tuple[Tensor, ...]:
        """Attention of boxes over other boxes (E,), over pairs of which they are the subject, or the object (K,)."""
        i = reading.batch.edge_index[0]
        skip, subject, object_ = self.attention
        between = reading.over_pairs(lambda rows, i, j: skip(boxes, i, j, boxes))
        every = torch.arange(pairs.shape[0], device=pairs.device)
        scores = [between, subject(boxes, ends[0], every, pairs), object_(boxes, ends[1], every, pairs)]
        return tuple(segment_softmax(each, at, boxes.shape[0]) for each, at in zip(scores, (i, *ends), strict=True))

    def _all(self, reading: Reading, logits: Tensor, kept: Tensor, related: Tensor) -> Tensor:
        """logits (K, 1 + P) of the kept pairs -> (E, 1 + P) of all; on a baseline, what is added to its logits."""
        rows = (kept.nonzero().flatten(),)
        if reading.pair_logits is not None:  # the baseline alone scores pairs that were not proposed
            return logits.new_zeros(kept.shape[0], logits.shape[1]).index_put(rows, logits)
        image = reading.batch.batch[reading.batch.edge_index[0]]
        lowest = logits.detach().log_softmax(1).amin(1).clamp_min(LOWEST)
        floor = lowest.new_zeros(reading.batch.num_graphs).scatter_reduce(0, image[kept], lowest, "amin")
        behind = (floor[image] - BEHIND + logsigmoid(related.detach()).clamp_min(-BEHIND))[:, None]
        out = torch.cat([torch.zeros_like(behind), behind.expand(-1, logits.shape[1] - 1)], 1)
        return out.index_put(rows, logits)

    def training_loss(self, batch: SceneBatch, out: SceneLogits, common: Tensor) -> Tensor:
        """The common loss and the proposals': is a pair related, over all pairs."""
        if out.extra is None:
            return common
        image = batch.batch[batch.edge_index[0, batch.relation_edge]]
        rows = segment_sum(batch.relation_count.to(common.dtype), image, batch.num_graphs)
        loss = self.related_loss(batch, out.extra["related"])
        return common + loss * rows.clamp_min(1).rsqrt() / batch.num_graphs


class Attention(nn.Module):
    """w . ReLU(W_a [z_i, z_j])."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.own, self.other = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)

    def forward(self, boxes: Tensor, i: Tensor, j: Tensor, others: Tensor) -> Tensor:
        """boxes (N, d) by i (M,), others (L, d) by j (M,) -> (M,)."""
        own, other = self.own(boxes).index_select(0, i), self.other(others).index_select(0, j)
        return self.score((own + other).relu()).squeeze(1)


class Messages(nn.Module):
    """Messages between boxes (N, a) and pairs (K, b): three to boxes, two to pairs.

    With `relu` a message is ReLU(W z), as in the released code.
    """

    def __init__(self, boxes: int, pairs: int, relu: bool) -> None:
        super().__init__()
        self.relu = relu
        self.skip = nn.Linear(boxes, boxes)
        self.from_subject_pairs, self.from_object_pairs = nn.Linear(pairs, boxes), nn.Linear(pairs, boxes)
        self.to_object_pairs, self.to_subject_pairs = nn.Linear(boxes, pairs), nn.Linear(boxes, pairs)

    def forward(
        self, reading: Reading, boxes: Tensor, pairs: Tensor, ends: Tensor, weights: tuple[Tensor, ...]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """ends (2, K) of the pairs; weights (E,), (K,) and (K,) of the three messages to boxes."""

        def said(layer: nn.Module, z: Tensor) -> Tensor:
            return layer(z).relu() if self.relu else layer(z)

        (i, j), count = ends, boxes.shape[0]
        skip = said(self.skip, boxes)
        between = torch.zeros_like(skip)
        for rows in reading.chunks():
            a, b = reading.batch.edge_index[:, rows]
            between = between + segment_sum(weights[0][rows, None] * skip.index_select(0, b), a, count)
        to_boxes = [
            between,
            segment_sum(weights[1][:, None] * said(self.from_subject_pairs, pairs), i, count),
            segment_sum(weights[2][:, None] * said(self.from_object_pairs, pairs), j, count),
        ]
        to_pairs = [said(self.to_subject_pairs, boxes)[i], said(self.to_object_pairs, boxes)[j]]
        return to_boxes, to_pairs


class RelationProposals(nn.Module):
    r"""Log-odds (E,) that a pair is related, from the features of each of its boxes.

    .. math:: s_{ij} = \Phi(z_i)^\top \Psi(z_j), \qquad z_i = [\log p_i, \text{box}_i]
    """

    def __init__(self, labels: int, width: int) -> None:
        super().__init__()
        parts = [labels, BOX_WIDTH]
        self.phi, self.psi = MLP(parts, [width], width), MLP(parts, [width], width)

    def forward(self, reading: Reading) -> Tensor:
        box = reading.nodes[:, -ENTITY_WIDTH:][:, :BOX_WIDTH]
        z = torch.cat([scaled_log(reading.node_logits), box], 1)
        phi, psi = self.phi(z), self.psi(z)
        return reading.over_pairs(lambda rows, i, j: (phi.index_select(0, i) * psi.index_select(0, j)).sum(1))


def kept_pairs(scores: Tensor, batch: SceneBatch, keep: int) -> Tensor:
    """scores (E,) -> (E,) whether each pair is among the best of its image.

    None is suppressed for overlapping a better one, as in the released code: of given boxes, pairs that share a large
    box overlap too. Pairs with equal scores are taken as they are listed: the one place where the listing can matter.
    """
    image = batch.batch[batch.edge_index[0]]
    by_score = torch.argsort(scores, descending=True, stable=True)
    order = by_score[torch.argsort(image[by_score], stable=True)]
    rank = torch.arange(order.shape[0], device=order.device) - batch.edge_ptr[image[order]]
    return torch.zeros_like(order).scatter(0, order, (rank < keep).long()).bool()


@dataclass(frozen=True)
class GraphRcnnConfig(SystemConfig):
    """Graph R-CNN with the attention of the paper's text."""

    kind: Literal["graph_rcnn"] = "graph_rcnn"
    context, network = True, GraphRcnn


PRESETS = {"graph-rcnn": GraphRcnnConfig()}
