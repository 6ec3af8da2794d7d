r"""Which pairs of an image are worth a look (the relation proposals of Graph R-CNN).

.. math:: s_{ij} = \sigma(\Phi(z_i)^\top \Psi(z_j)), \qquad z_i = [\log p_i, \text{box}_i]

The best K pairs of each image are kept, without those that overlap a better one by more than the threshold,

.. math:: \text{IoU}(uv, pq) = \frac{I(u, p) + I(v, q)}{U(u, p) + U(v, q)}

Pairs with equal scores are taken as they are listed: the one place where the listing can matter.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from scenegpi.features.batch import SceneBatch
from scenegpi.gpi.networks import MLP
from scenegpi.models.inputs import BOX_WIDTH, ENTITY_WIDTH
from scenegpi.models.sgp import scaled_log
from scenegpi.models.systems.reader import Reading


class RelationProposals(nn.Module):
    """Log-odds (E,) that a pair is related, from what is known of each of its boxes."""

    def __init__(self, labels: int, width: int) -> None:
        super().__init__()
        parts = [labels, BOX_WIDTH]
        self.phi, self.psi = MLP(parts, [width], width), MLP(parts, [width], width)

    def forward(self, reading: Reading) -> Tensor:
        box = reading.nodes[:, -ENTITY_WIDTH:][:, :BOX_WIDTH]
        z = torch.cat([scaled_log(reading.node_logits), box], 1)
        phi, psi = self.phi(z), self.psi(z)

        def scores(rows: slice) -> Tensor:
            i, j = reading.batch.edge_index[:, rows]
            return (phi.index_select(0, i) * psi.index_select(0, j)).sum(1)

        return reading.over_pairs(scores)


def kept_pairs(scores: Tensor, batch: SceneBatch, keep: int, share: float = 1.0, nms: float = 1.0) -> Tensor:
    """scores (E,) -> (E,) whether each pair is among the best of its image."""
    image = batch.batch[batch.edge_index[0]]
    count = batch.edge_ptr[1:] - batch.edge_ptr[:-1]
    by_score = torch.argsort(scores, descending=True, stable=True)
    order = by_score[torch.argsort(image[by_score], stable=True)]
    rank = torch.arange(order.shape[0], device=order.device) - batch.edge_ptr[image[order]]
    most = (count * share).ceil().long().clamp_max(keep)
    chosen = rank < most[image[order]]
    order, rank = order[chosen], rank[chosen]
    if nms < 1 and len(order):
        order = order[_suppress(order, rank, image[order], batch, nms)]
    none = torch.zeros_like(scores, dtype=torch.bool)
    return none.index_fill(0, order, True)


def _suppress(order: Tensor, rank: Tensor, image: Tensor, batch: SceneBatch, most: float) -> Tensor:
    """(K,) which of the pairs `order`, best of an image first, survive those before them."""
    width, graphs = int(rank.max()) + 1, batch.num_graphs
    boxes = batch.boxes.new_zeros(graphs, width, 2, 4)
    boxes[image, rank] = batch.boxes[batch.edge_index[:, order]].transpose(0, 1)
    there = torch.zeros(graphs, width, dtype=torch.bool, device=order.device)
    there[image, rank] = True
    shared, joint = _areas(boxes)
    beats = (shared > most * joint).triu(1) & there[:, :, None] & there[:, None]
    alive = there
    while True:  # the first pair is settled at once, the next after it: at most `width` rounds, in practice a few
        again = there & ~(beats & alive[:, :, None]).any(1)
        if torch.equal(again, alive):
            return alive[image, rank]
        alive = again


def _areas(boxes: Tensor) -> tuple[Tensor, Tensor]:
    """boxes (G, K, 2, 4) of subjects and objects -> shared and joint areas of all two pairs, (G, K, K) each."""
    a, b = boxes[:, :, None], boxes[:, None]
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    shared = (high - low).clamp_min(0).prod(-1)
    area = (boxes[..., 2:] - boxes[..., :2]).prod(-1)
    joint = area[:, :, None] + area[:, None] - shared
    return shared.sum(-1), joint.sum(-1)
