"""Flat graphs: a batch of graphs as one list of nodes and one list of edges, in PyG's tensor convention.

``x (N, d)`` node features, ``edge_index (2, E)`` node numbers, ``edge_attr (E, e)`` edge features, ``batch (N,)`` the
graph of each node (ascending). No padding. torch_geometric's ``Data`` and ``Batch`` are read through the same
attribute names, so the package itself is not needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from scenegpi.pairs import complete_pairs


@dataclass(frozen=True)
class FlatGraph:
    """One batch of graphs. ``x_class (N,)`` and ``edge_class (E,)`` are optional rows of a layer's word tables."""

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None = None
    batch: Tensor | None = None
    x_class: Tensor | None = None
    edge_class: Tensor | None = None

    def __post_init__(self) -> None:
        index, count = self.edge_index, self.x.shape[0]
        if index.dim() != 2 or index.shape[0] != 2:
            raise ValueError(f"edge_index must be (2, E), not {tuple(index.shape)}")
        if index.numel() and (int(index.min()) < 0 or int(index.max()) >= count):
            raise ValueError(f"edge_index names node {int(index.max())}, but x has {count} rows")
        for name, rows in (("batch", count), ("x_class", count), ("edge_attr", None), ("edge_class", None)):
            value, expected = getattr(self, name), index.shape[1] if rows is None else rows
            if value is not None and value.shape[0] != expected:
                raise ValueError(f"{name} has {value.shape[0]} rows, expected {expected}")

    @classmethod
    def of(cls, graph: Any) -> "FlatGraph":
        """Any object with ``x`` and ``edge_index`` attributes (PyG ``Data``, ``Batch``) as a flat graph."""
        if isinstance(graph, cls):
            return graph
        named: dict[str, Any] = {field.name: getattr(graph, field.name, None) for field in fields(cls)}
        if not (isinstance(named["x"], Tensor) and isinstance(named["edge_index"], Tensor)):
            raise TypeError(f"{type(graph).__name__} has no tensors x and edge_index")
        return cls(**named)

    @property
    def num_graphs(self) -> int:
        if self.batch is None:
            return 1
        return int(self.batch.max()) + 1 if self.batch.numel() else 0

    def tensors(self) -> dict[str, Tensor]:
        """Keyword arguments of a layer's ``forward``: every tensor that is present."""
        present = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in present.items() if value is not None}

    def relabel(self, order: Tensor, edge_order: Tensor | None = None) -> "FlatGraph":
        """sigma(z): new node k is old node ``order[k]``; edges move along, listed by ``edge_order`` if given.

        order ``(N,)`` is a permutation that must not move a node to another graph; edge_order ``(E,)``.
        """
        new_name = torch.empty_like(order)
        new_name[order] = torch.arange(len(order), device=order.device)
        edges = slice(None) if edge_order is None else edge_order
        return replace(
            self,
            x=self.x[order],
            x_class=None if self.x_class is None else self.x_class[order],
            edge_index=new_name[self.edge_index][:, edges],
            edge_attr=None if self.edge_attr is None else self.edge_attr[edges],
            edge_class=None if self.edge_class is None else self.edge_class[edges],
        )


def complete_edges(sizes: Sequence[int], device: torch.device | str | None = None) -> Tensor:
    """All ordered pairs (i, j), i != j, within graphs of the given sizes: ``(2, E)``, E = sum n(n-1).

    Sorted by the first row, then the second: row 0 runs over i, row 1 over its n - 1 partners j.
    """
    return torch.from_numpy(complete_pairs(np.asarray(sizes, dtype=np.int64))).to(device)
