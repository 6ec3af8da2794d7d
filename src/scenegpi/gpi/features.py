r"""Features of nodes or edges: a dense part and, optionally, a row of a word table.

.. math:: z = [x, T_c], \qquad W z = W_x x + (T W_T^\top)_c

The product of the table with a weight has one row for each class: it is computed once, then looked up.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear


@dataclass(frozen=True)
class TableFeatures:
    """``dense (M, a)``, ``classes (M,)`` and ``table (C, w)``; the last two come together or not at all."""

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
        # With no more rows than classes, multiplying the rows themselves is cheaper.
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
        if torch.is_autocast_enabled(out.device.type):  # autocast does not change in-place operations
            dense, weight = dense.to(out.dtype), weight.to(out.dtype)
        return out.addmm_(dense, weight.t())

    def _add_words(self, out: Tensor, table: Tensor) -> Tensor:
        assert self.classes is not None
        out += embedding(self.classes, table)
        return out

    def take(self, index: Tensor) -> Self:
        """The rows ``index (K,)``."""
        classes = None if self.classes is None else self.classes.index_select(0, index)
        return replace(self, dense=self.dense.index_select(0, index), classes=classes)

    def split(self, sizes: list[int]) -> list[Self]:
        """Consecutive rows, ``sizes`` of them in each piece."""
        dense = self.dense.split(sizes)
        classes = [None] * len(dense) if self.classes is None else self.classes.split(sizes)
        return [replace(self, dense=rows, classes=each) for rows, each in zip(dense, classes, strict=True)]

    def made(self) -> "TableFeatures":
        """The features themselves."""
        return self


@dataclass(frozen=True)
class LazyFeatures(TableFeatures):
    """Features of many edges, computed when read, a chunk at a time, so that they never all exist at once.

    ``dense (M,)`` holds row numbers, of which ``make`` gives the dense part: ``(m,) -> (m, a)``.
    """

    make: Callable[[Tensor], Tensor] = field(kw_only=True)

    def made(self) -> TableFeatures:
        return TableFeatures(self.make(self.dense), self.classes, self.table)
