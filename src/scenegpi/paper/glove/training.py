r"""GloVe: word vectors by weighted least squares on co-occurrence counts (Pennington et al. 2014).

.. math::
    J = \sum_{a, b : X_{ab} > 0} f(X_{ab}) \left(w_a^\top \tilde w_b + b_a + \tilde b_b - \log X_{ab}\right)^2
      + \sum_{a, b : X_{ab} = 0} f_0 \left(w_a^\top \tilde w_b + b_a + \tilde b_b - \log x_0\right)^2, \qquad
    f(x) = \min(1, x / x_{max})^{3/4}

The second sum is not in the paper, and `zeros=0` leaves it out. In a billion words the pairs that never meet can be
ignored; in a few hundred thousand they are most of what the text says. They are sampled: `zeros` of them for each
counted pair, both words drawn by frequency^(3/4). AdaGrad over shuffled minibatches.

The word's vector is w, or with `vectors="sum"` the paper's :math:`w + \tilde w`. Words with similar w have similar
neighbours (dog, cat); the sum also brings together words that occur next to each other (dog, lying), and with
little text that takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding

from scenegpi.paper.glove.cooccurrence import Cooccurrences

X_MAX, POWER = 3.0, 0.75
"""Counts from x_max on weigh 1, and below it the share of it to this power."""
ZERO_COUNT, ZERO_WEIGHT = 0.01, 0.3
"""x_0 and f_0: what a pair that never meets is fitted to, and how strongly."""


@dataclass(frozen=True)
class GloveOptions:
    """How to fit; the defaults suit a few hundred thousand words of captions.

    Args:
        dim: width d of the vectors.
        epochs: passes over the counted pairs.
        zeros: pairs that never meet, sampled for each counted pair.
        vectors: "word" gives w, "sum" w + w~.
        learning_rate, batch: of AdaGrad.
        seed: random seed.
    """

    dim: int = 300
    epochs: int = 30
    zeros: float = 1.0
    vectors: Literal["word", "sum"] = "word"
    learning_rate: float = 0.05
    batch: int = 1 << 14
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("dim", "epochs", "batch", "learning_rate"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: {getattr(self, name)}, expected more than 0")
        if self.zeros < 0:
            raise ValueError("zeros: expected 0 or more")


def train_glove(
    counts: Cooccurrences, options: GloveOptions | None = None, progress: Callable[[int, float], None] | None = None
) -> NDArray[np.float32]:
    """Vectors (V, d) of `counts.words`; `progress` is called with each epoch and its mean loss."""
    options = options or GloveOptions()
    random = torch.Generator().manual_seed(options.seed)
    pairs = _Pairs(counts, options, random)
    size, dim = len(counts.words), options.dim
    word, context = ((torch.rand(size, dim, generator=random) - 0.5).div_(dim).requires_grad_() for _ in range(2))
    word_bias, context_bias = (torch.zeros(size, 1, requires_grad=True) for _ in range(2))
    learned = [word, context, word_bias, context_bias]
    optimiser = torch.optim.Adagrad(learned, options.learning_rate, initial_accumulator_value=1.0, eps=0.0)
    for epoch in range(options.epochs):
        total = 0.0
        for chosen in torch.randperm(len(pairs), generator=random).split(options.batch):
            a, b, target, weight = pairs.take(chosen)
            bias = embedding(a, word_bias) + embedding(b, context_bias)
            error = (embedding(a, word) * embedding(b, context)).sum(1) + bias.squeeze(1) - target
            loss = (weight * error.square()).sum()
            optimiser.zero_grad()
            (loss / 2).backward()
            optimiser.step()
            total += float(loss.detach())
        if progress is not None:
            progress(epoch + 1, total / len(pairs))
    vectors = word if options.vectors == "word" else word + context
    return np.asarray(vectors.detach().numpy())


class _Pairs:
    """What is fitted: the counted pairs, and zeros drawn anew with every batch."""

    def __init__(self, counts: Cooccurrences, options: GloveOptions, random: torch.Generator) -> None:
        self.rows, self.columns = (torch.from_numpy(x).long() for x in (counts.rows, counts.columns))
        count = torch.from_numpy(counts.counts)
        self.target = count.log()
        self.weight = (count / X_MAX).clamp(max=1) ** POWER
        self.size, self.options, self.random = len(counts.words), options, random
        self.keys = self.rows * self.size + self.columns  # ascending: rows, then columns
        draw = torch.from_numpy(counts.frequency).double() ** 0.75
        self.upto = torch.cumsum(draw, 0) / draw.sum()

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Rows, columns, targets and weights of the chosen pairs and of as many zeros as asked for."""
        found = self.rows[chosen], self.columns[chosen], self.target[chosen], self.weight[chosen]
        zeros = int(self.options.zeros * len(chosen))
        if not zeros:
            return found
        a, b = self._draw(zeros), self._draw(zeros)
        key = a * self.size + b
        place = torch.searchsorted(self.keys, key).clamp(max=len(self.keys) - 1)
        never = self.keys[place] != key
        a, b = a[never], b[never]
        target = torch.full((len(a),), float(np.log(ZERO_COUNT)))
        weight = torch.full((len(a),), ZERO_WEIGHT)
        drawn = (a, b, target, weight)
        return tuple(torch.cat(parts) for parts in zip(found, drawn, strict=True))  # type: ignore[return-value]

    def _draw(self, number: int) -> Tensor:
        uniform = torch.rand(number, dtype=torch.float64, generator=self.random)
        return torch.searchsorted(self.upto, uniform, right=True).clamp(max=self.size - 1)
