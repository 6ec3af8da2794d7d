r"""Features of nodes or edges: a dense part and, optionally, a row of a word table.

.. math:: z = [x, T_c], \qquad W z = W_x x + (T W_T^\top)_c

The product of the table with a weight has one row for each class: it is made once, then looked up. For fewer rows than
classes the product of the rows themselves is cheaper.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear

__all__ = ["Features"]


@dataclass(frozen=True)
class Features:
    """``dense (M, a)``, ``classes (M,)`` and ``table (C, w)``, the last two both or neither."""

    dense: Tensor
    classes: Tensor | None
    table: Tensor | None

    @classmethod
    def of(cls, dense: Tensor, classes: Tensor | None, table: Tensor | None, name: str) -> "Features":
        """Checks that classes and table come together; the table takes the dense part's type."""
        if classes is None and table is None:
            return cls(dense, None, None)
        if classes is None or table is None:
            raise ValueError(f"{name} and the layer's word table must be given together")
        return cls(dense, classes, table.to(dense.dtype))

    def full(self) -> Tensor:
        """z itself, ``(M, a + w)``."""
        if self.classes is None or self.table is None:
            return self.dense
        return torch.cat([self.dense, embedding(self.classes, self.table)], 1)

    def take(self, index: Tensor) -> "Features":
        """The rows ``index (K,)``."""
        classes = None if self.classes is None else self.classes.index_select(0, index)
        return Features(self.dense.index_select(0, index), classes, self.table)

    def split(self, weight: Tensor) -> tuple[Tensor, Tensor | None]:
        """weight ``(h, a + w)`` -> the dense part's weight ``(h, a)`` and the folded table ``(C, h)``."""
        if self.table is None:
            return weight, None
        dense, words = weight.split([self.dense.shape[1], self.table.shape[1]], 1)
        return dense, linear(self.table, words)

    def times(self, weight: Tensor) -> Tensor:
        """W z for weight ``(h, a + w)``: ``(M, h)``."""
        if self.table is None or len(self.dense) <= len(self.table):
            return linear(self.full(), weight)
        dense, table = self.split(weight)
        product = linear(self.dense, dense)
        return product if table is None or self.classes is None else product + embedding(self.classes, table)
