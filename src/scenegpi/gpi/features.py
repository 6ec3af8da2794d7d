r"""Features of nodes or edges: a dense part and, optionally, a row of a word table.

.. math:: z = [x, T_c], \qquad W z = W_x x + (T W_T^\top)_c

The product of the table with a weight has one row for each class: it is made once, then looked up.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear

__all__ = ["EdgeFeatures", "LazyFeatures", "TableFeatures"]


@dataclass(frozen=True)
class TableFeatures:
    """``dense (M, a)``, ``classes (M,)`` and ``table (C, w)``, the last two both or neither."""

    dense: Tensor
    classes: Tensor | None = None
    table: Tensor | None = None

    @classmethod
    def of(cls, dense: Tensor, classes: Tensor | None, table: Tensor | None, name: str) -> "TableFeatures":
        """Checks that classes and table come together; the table takes the dense part's type."""
        if classes is None and table is None:
            return cls(dense)
        if classes is None or table is None:
            raise ValueError(f"{name} and the layer's word table must be given together")
        features = cls(dense, classes, table if table.dtype == dense.dtype else table.to(dense.dtype))
        # For no more rows than classes the rows themselves are the smaller product.
        return cls(features.full()) if len(dense) <= len(table) else features

    def full(self) -> Tensor:
        """z itself, ``(M, a + w)``."""
        if self.classes is None or self.table is None:
            return self.dense
        return torch.cat([self.dense, embedding(self.classes, self.table)], 1)

    def fold(self, weight: Tensor) -> tuple[Tensor, Tensor | None]:
        """weight ``(h, a + w)`` -> the dense part's weight ``(h, a)`` and the table times its weight ``(C, h)``."""
        if self.table is None:
            return weight, None
        dense, words = weight.split([weight.shape[1] - self.table.shape[1], self.table.shape[1]], 1)
        return dense, linear(self.table, words)

    def times(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """W z + b for weight ``(h, a + w)`` and bias ``(h,)``: ``(M, h)``."""
        weight, table = self.fold(weight)
        product = linear(self.dense, weight, bias)
        return product if table is None else self._add_words(product, table)

    def add_to(self, out: Tensor, weight: Tensor, table: Tensor | None) -> Tensor:
        """Adds W z, the two parts of W from :meth:`fold`, to out ``(M, h)`` in place."""
        if table is not None:
            self._add_words(out, table)
        dense = self.dense
        if torch.is_autocast_enabled(out.device.type):  # which leaves operations in place alone
            dense, weight = dense.to(out.dtype), weight.to(out.dtype)
        return out.addmm_(dense, weight.t())

    def _add_words(self, out: Tensor, table: Tensor) -> Tensor:
        assert self.classes is not None
        out += embedding(self.classes, table)
        return out

    def take(self, index: Tensor) -> "TableFeatures":
        """The rows ``index (K,)``."""
        classes = None if self.classes is None else self.classes.index_select(0, index)
        return TableFeatures(self.dense.index_select(0, index), classes, self.table)

    def split(self, sizes: Sequence[int]) -> list["TableFeatures"]:
        """Consecutive rows, ``sizes`` of them in each piece."""
        dense = self.dense.split(list(sizes))
        classes = [None] * len(dense) if self.classes is None else self.classes.split(list(sizes))
        return [TableFeatures(*piece, self.table) for piece in zip(dense, classes, strict=True)]

    def made(self) -> "TableFeatures":
        """These features: they are there."""
        return self


@dataclass(frozen=True)
class LazyFeatures:
    """Features of many edges that are made when they are read, a chunk at a time, so that they never all exist.

    ``make`` takes row numbers ``(m,)`` and gives their dense part ``(m, a)``; ``rows (M,)`` are those of these edges;
    ``classes (M,)`` and ``table (C, w)`` as of :class:`TableFeatures`.
    """

    make: Callable[[Tensor], Tensor]
    rows: Tensor
    classes: Tensor | None = None
    table: Tensor | None = None

    def take(self, index: Tensor) -> "LazyFeatures":
        """The rows ``index (K,)``."""
        classes = None if self.classes is None else self.classes.index_select(0, index)
        return LazyFeatures(self.make, self.rows.index_select(0, index), classes, self.table)

    def split(self, sizes: Sequence[int]) -> list["LazyFeatures"]:
        """Consecutive rows, ``sizes`` of them in each piece."""
        rows = self.rows.split(list(sizes))
        classes = [None] * len(rows) if self.classes is None else self.classes.split(list(sizes))
        return [LazyFeatures(self.make, *piece, self.table) for piece in zip(rows, classes, strict=True)]

    def none(self) -> TableFeatures:
        """The features of no edge, ``(0, a + w)``."""
        return self.take(self.rows[:0]).made()

    def made(self) -> TableFeatures:
        """The features themselves."""
        return TableFeatures(self.make(self.rows), self.classes, self.table)


EdgeFeatures = TableFeatures | LazyFeatures

"""Of the edges of a batch."""
