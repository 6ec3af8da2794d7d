"""SceneGraphRecall: the torchmetrics class, a thin shell around the counts of this room.

Its state is the sums, their bootstrap replicates and a fingerprint of the images, all joined by addition, so it syncs
across processes like any other metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from scenegpi.metrics.figures import Groups
from scenegpi.metrics.intervals import poisson_weights
from scenegpi.metrics.matching import ImageInput
from scenegpi.metrics.protocol import Protocol
from scenegpi.metrics.result import Result, make_result
from scenegpi.metrics.state import Plan, chunks, paired
from scenegpi.metrics.zero_shot import ZeroShot
from scenegpi.vocabulary import Vocabulary


class SceneGraphRecall(Metric):
    """Recall of scene graphs, all figures of a protocol at once.

    `update(predictions, targets)` takes lists of SceneGraphs or of dicts of arrays (`scenegpi.metrics.inputs`), one
    entry for each image; `compute()` gives `{"R@50": tensor(0.65), ...}`, `result()` the same with intervals, protocol
    and counts.

    Args:
        protocol: how to score; PredCls with K = 20, 50, 100 if None.
        predicates: a Vocabulary, the names of the P predicates, or P.
        zero_shot: which triplets are zero-shot; None leaves zR@K out.
        groups: predicate indices of named groups, as `predicate_groups` makes them.
        bootstrap: replicates for the intervals of `result()`; 0 for none.
        seed: of the replicates.
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False

    sums: Tensor
    replicates: Tensor
    fingerprint: Tensor

    def __init__(
        self,
        protocol: Protocol | None = None,
        predicates: Vocabulary | Sequence[str] | int = 50,
        zero_shot: ZeroShot | None = None,
        groups: Groups | None = None,
        bootstrap: int = 0,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.plan = Plan(protocol or Protocol(), predicates, zero_shot, groups, bootstrap, seed)
        layout = self.plan.layout
        self.add_state("sums", torch.zeros(layout.size, dtype=torch.float64), dist_reduce_fx="sum")
        replicates = torch.zeros(bootstrap, layout.replicated, dtype=torch.float64)
        self.add_state("replicates", replicates, dist_reduce_fx="sum")
        self.add_state("fingerprint", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, predictions: Iterable[ImageInput], targets: Iterable[ImageInput]) -> None:
        """Score the images of a batch."""
        for counts, keys in chunks(paired(predictions, targets), self.plan):
            self.sums += torch.from_numpy(counts.sum(axis=0)).to(self.sums.device)
            if self.plan.bootstrap:
                weights = poisson_weights(keys, self.plan.bootstrap, self.plan.seed).astype(np.float64)
                part = torch.from_numpy(counts[:, : self.plan.layout.replicated].copy()).to(self.sums.device)
                self.replicates.addmm_(torch.from_numpy(weights).to(self.sums.device).T, part)
            self.fingerprint += int(keys.sum(dtype=np.uint64).astype(np.int64))

    def compute(self) -> dict[str, Tensor]:
        """Every figure, a scalar tensor each; NaN where there was nothing to count."""
        figures = self._result().figures
        return {name: torch.tensor(value, dtype=torch.float64) for name, value in figures.items()}

    def result(self) -> Result:
        """The figures of all processes together, with intervals, protocol, counts and notes."""
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=self._to_sync):
            return self._result()

    def _result(self) -> Result:
        return make_result(
            self.plan,
            self.sums.cpu().numpy(),
            self.replicates.cpu().numpy(),
            int(self.fingerprint) % 2**64,
        )
