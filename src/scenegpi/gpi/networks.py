r"""The default networks phi, alpha, beta and rho: affine layers that know the parts of their input.

A network of the theorem reads a concatenation, phi reads :math:`[z_i, z_{ij}, z_j]`. An affine map of a concatenation
is a sum of affine maps of its parts,

.. math:: W [z_i, z_{ij}, z_j] + b = (W_i z_i + b) + W_{ij} z_{ij} + W_j z_j,

so what depends on one node can be computed once per node instead of once per edge (:mod:`scenegpi.gpi.split`).
:class:`Dense` and :class:`MLP` keep the one weight of the concatenated form, and the sizes of the parts into which it
can be split.
"""

from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn

from scenegpi.gpi.dropout import dropout

Activation = Literal["relu", "none"]


class Dense(nn.Linear):
    """One fully-connected layer ``(M, sum(parts)) -> (M, out)`` with ReLU or no activation."""

    def __init__(self, parts: Sequence[int], out: int, activation: Activation = "relu") -> None:
        if activation not in ("relu", "none"):
            raise ValueError(f"activation must be 'relu' or 'none', not {activation!r}; pass a module for others")
        super().__init__(sum(parts), out)
        self.parts = tuple(parts)
        self.activation = activation

    @property
    def first(self) -> "Dense":
        """The affine layer that reads the parts: this one."""
        return self

    def forward(self, input: Tensor) -> Tensor:
        """input ``(M, sum(parts))`` -> ``(M, out)``."""
        return self.tail(super().forward(input))

    def tail(self, affine: Tensor) -> Tensor:
        """What follows the affine map, whose result ``(M, out)`` is overwritten."""
        return affine.relu_() if self.activation == "relu" else affine

    def columns(self) -> tuple[Tensor, ...]:
        """The weight split by parts: one ``(out, part)`` view for each part."""
        return self.weight.split(self.parts, dim=1)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, parts={self.parts}, activation={self.activation!r}"


class MLP(nn.Module):
    """Fully-connected ``(M, sum(parts)) -> (M, out)``: hidden layers with ReLU and dropout, last layer affine."""

    def __init__(self, parts: Sequence[int], hidden: Sequence[int], out: int, dropout: float = 0.0) -> None:
        super().__init__()
        inputs = [parts, *([size] for size in hidden)]
        layers = zip(inputs, [*hidden, out], strict=True)
        self.layers = nn.ModuleList(
            Dense(read, size, "relu" if k < len(hidden) else "none") for k, (read, size) in enumerate(layers)
        )
        self.dropout = dropout

    @property
    def first(self) -> Dense:
        """The affine layer that reads the parts."""
        layer = self.layers[0]
        assert isinstance(layer, Dense)
        return layer

    def forward(self, input: Tensor) -> Tensor:
        """input ``(M, sum(parts))`` -> ``(M, out)``."""
        return self._deeper(self.layers[0](input))

    def tail(self, affine: Tensor) -> Tensor:
        """What follows the first affine map, whose result ``(M, hidden)`` is overwritten: ``(M, out)``."""
        return self._deeper(self.first.tail(affine))

    def _deeper(self, hidden: Tensor) -> Tensor:
        for layer in list(self.layers)[1:]:
            hidden = layer(dropout(hidden, self.dropout, self.training))
        return hidden
