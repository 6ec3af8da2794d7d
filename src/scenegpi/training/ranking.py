r"""Ranking losses: the relations of an image before its unrelated pairs, as recall@K ranks them.

.. math::
    x_{ijr} = \log P(r \mid ij), \qquad u_{kl} = \max_r \log P(r \mid kl) \\
    \text{pairwise} = \sum_{(i, j, r)} n_{ijr} \, \text{mean}_{kl} \log(1 + e^{u_{kl} - x_{ijr}}), \qquad
    \text{listwise} = \sum_{(i, j, r)} n_{ijr} \log\Big(1 + \sum_{kl} e^{u_{kl} - x_{ijr}}\Big)

over the n_ijr rows of each relation and the unrelated pairs kl of its image, which stand in the list by their best
predicate. Listwise is minus the log of the share of the relation among its rivals and itself.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from scenegpi.features.batch import SceneBatch
from scenegpi.gpi.segments import segment_max, segment_sum

Ranking = Literal["none", "pairwise", "listwise"]


def ranking_loss(edges: Tensor, batch: SceneBatch, kind: Ranking) -> Tensor:
    """Logits (E, 1 + P) -> the loss of each image, (G,); 0 for one without relations or without unrelated pairs."""
    logs = edges.log_softmax(1)
    image = batch.batch[batch.edge_index[0]]
    free = torch.ones(len(edges), dtype=torch.bool, device=edges.device)
    free[batch.relation_edge] = False
    rivals = logs[free, 1:].amax(1)
    count = torch.bincount(image[free], minlength=batch.num_graphs)
    place = image[batch.relation_edge]
    kept = count[place] > 0
    place, weight = place[kept], batch.relation_count[kept].to(edges.dtype)
    row = logs[batch.relation_edge[kept], batch.relation_class[kept]]
    found = edges.new_zeros(batch.num_graphs)
    if kind == "listwise":
        loss = softplus(_log_sums(rivals, image[free], batch.num_graphs)[place] - row)
        return found.index_add(0, place, loss * weight)
    first = (count.cumsum(0) - count)[place]
    which = torch.repeat_interleave(torch.arange(len(row), device=row.device), count[place])
    before = count[place].cumsum(0) - count[place]
    rival = first[which] + torch.arange(len(which), device=row.device) - before[which]
    loss = softplus(rivals[rival] - row[which]) * (weight / count[place])[which]
    return found.index_add(0, place[which], loss)


def _log_sums(values: Tensor, index: Tensor, segments: int) -> Tensor:
    """log sum exp of each segment: (M,) -> (segments,); an empty one gives a very small number."""
    top = segment_max(values.detach(), index, segments)
    total = segment_sum((values - top[index]).exp(), index, segments)
    return total.clamp_min(torch.finfo(values.dtype).tiny).log() + top
