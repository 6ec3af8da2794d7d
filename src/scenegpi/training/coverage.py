r"""Targets that count what a list of triplets adds: rows matched as recall matches them, and none twice.

A ground-truth row (s, o, r) is found by every pair (i, j) in D(s) x D(o), the duplicates of its boxes. A pair of which
a box has a bigger duplicate comes second: rows whose predicate is the pair's own first choice are said already by the
pair of the bigger boxes, and count 0 for it; it learns what is left to say.

.. math:: T_{ijr} = \sum_{(s, o, r) : (i, j) \in D(s) \times D(o)} 1 - [\text{second}_{ij}]\, [c_{ij} = r]

The first choice c_ij is the baseline's, which knows nothing of duplicates.
"""

from __future__ import annotations

import torch
from torch import Tensor

from scenegpi.features.batch import SceneBatch
from scenegpi.models.duplicates import covered, twins


def coverage_rows(batch: SceneBatch, first_choice: Tensor) -> Tensor:
    """T (E, P): how many rows each predicate of each pair would add; first_choice (E,) predicates, counted from 0."""
    edge, row = matched_edges(batch)
    predicate = batch.relation_class[row] - 1
    hidden = covered(batch, batch.labels)
    i, j = batch.edge_index[:, edge]
    said = (hidden[i] | hidden[j]) & (first_choice[edge] == predicate)
    weight = batch.relation_count[row].float() * (~said)
    out = torch.zeros(batch.num_edges, len(batch.vocabulary.predicates), device=weight.device)
    return out.index_put_((edge, predicate), weight, accumulate=True)


def matched_edges(batch: SceneBatch) -> tuple[Tensor, Tensor]:
    """Every pair that finds a row: edges (K,) and places in `relation_edge` (K,)."""
    member, first = twins(batch, batch.labels)
    s, o = batch.edge_index[:, batch.relation_edge]
    row = torch.arange(len(s), device=s.device)
    i, taken = _spread(s, member, first)
    row, o = row[taken], o[taken]
    j, taken = _spread(o, member, first)
    i, row = i[taken], row[taken]
    real = i != j
    i, j, row = i[real], j[real], row[real]
    image = batch.batch[i]
    size = batch.ptr[image + 1] - batch.ptr[image]
    a, b = i - batch.ptr[image], j - batch.ptr[image]
    return batch.edge_ptr[image] + a * (size - 1) + b - (b > a).long(), row


def _spread(nodes: Tensor, member: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """All members of each node's D: members (K,) and which of the nodes (R,) each came from (K,)."""
    counts = first[nodes + 1] - first[nodes]
    taken = torch.repeat_interleave(torch.arange(len(nodes), device=nodes.device), counts)
    place = torch.arange(len(taken), device=nodes.device) - (counts.cumsum(0) - counts)[taken]
    return member[first[nodes][taken] + place], taken
