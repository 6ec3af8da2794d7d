"""SceneGraphRecall: the torchmetrics class, a thin shell around the counts of this package.

Its state is the sums, their bootstrap replicates and a fingerprint of the images, all joined by addition, so it syncs
across processes like any other metric. The length of the sums depends on the number of predicates, which is
known from the first update: before that they are a single 0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities.distributed import gather_all_tensors

from scenegpi.metrics.figures import Groups
from scenegpi.metrics.matching import ImageInput
from scenegpi.metrics.protocol import MetricError, Protocol
from scenegpi.metrics.result import Result, make_result
from scenegpi.metrics.state import Plan, RecallState, paired, predicates_of
from scenegpi.metrics.zero_shot import ZeroShot
from scenegpi.vocabulary import Vocabulary


class SceneGraphRecall(Metric):
    """Recall of scene graphs, all figures of a protocol at once.

    `update(predictions, targets)` takes lists of SceneGraphs or of dicts of arrays (`scenegpi.metrics.inputs`), one
    entry for each image; `compute()` gives `{"R@50": tensor(0.65), ...}`, `result()` the same with intervals, protocol
    and counts.

    Args:
        protocol: how to score, or just the K of recall@K, one or several: `SceneGraphRecall(50)` is PredCls at 50.
        predicates: a Vocabulary, the names of the P predicates, or P; read off the first images if None, and kept.
        zero_shot, groups, bootstrap, seed: as in `Plan`; intervals are those of `result()`.
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False

    sums: Tensor
    replicates: Tensor
    fingerprint: Tensor

    def __init__(
        self,
        protocol: Protocol | int | Sequence[int] | None = None,
        predicates: Vocabulary | Sequence[str] | int | None = None,
        zero_shot: ZeroShot | None = None,
        groups: Groups | None = None,
        bootstrap: int = 0,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not isinstance(protocol, Protocol):
            protocol = Protocol() if protocol is None else Protocol(ks=protocol)  # type: ignore[arg-type]
        self.make_plan = partial(Plan, protocol, zero_shot=zero_shot, groups=groups, bootstrap=bootstrap, seed=seed)
        self.given = self.known = predicates is not None
        if predicates is None:  # until images tell, the minimum that the groups allow; empty figures are NaN
            predicates = 1 + max((int(i) for members in (groups or {}).values() for i in members), default=0)
        self.plan = self.make_plan(predicates)
        for name, kind in (("sums", torch.float64), ("replicates", torch.float64), ("fingerprint", torch.int64)):
            self.add_state(name, torch.zeros((), dtype=kind), dist_reduce_fx="sum")

    def update(self, predictions: Iterable[ImageInput], targets: Iterable[ImageInput]) -> None:
        """Score the images of a batch."""
        pairs = paired(predictions, targets)
        if pairs and not self.known:
            self._learn(predicates_of(*zip(*pairs, strict=True)))
        if pairs:
            state = RecallState(self.plan).stream(pairs)
            self.sums = self.sums + torch.from_numpy(state.sums).to(self.sums.device)
            self.replicates = self.replicates + torch.from_numpy(state.replicates).to(self.sums.device)
            self.fingerprint += int(np.uint64(state.fingerprint).astype(np.int64))

    def compute(self) -> dict[str, Tensor]:
        """Every figure, a scalar tensor each; NaN where there was nothing to count."""
        figures = self._result().figures
        return {name: torch.tensor(value, dtype=torch.float64) for name, value in figures.items()}

    def result(self) -> Result:
        """The figures of all processes together, with intervals, protocol, counts and notes."""
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=self._to_sync):
            return self._result()

    def merge_state(self, incoming_state: dict[str, Any] | Metric) -> None:
        """Add the state of another metric of the same evaluation."""
        if isinstance(incoming_state, SceneGraphRecall) and incoming_state.known:
            if self.known and self.plan != incoming_state.plan:
                raise MetricError("merge: the two metrics were made for different evaluations")
            self._learn(incoming_state.plan.names)
        super().merge_state(incoming_state)

    def _learn(self, predicates: Vocabulary | Sequence[str] | int) -> None:
        self.plan, self.known = self.make_plan(predicates), True

    def _result(self) -> Result:
        sums, replicates = (state.cpu().numpy() for state in self._sized())
        return make_result(self.plan, sums, replicates, int(self.fingerprint) % 2**64)

    def _sized(self) -> tuple[Tensor, Tensor]:
        """The sums and replicates at full length."""
        shape = (self.plan.bootstrap, self.plan.layout.replicated)
        return self.sums.expand(self.plan.layout.size), self.replicates.expand(shape)

    def _sync_dist(
        self, dist_sync_fn: Callable[..., Any] = gather_all_tensors, process_group: Any | None = None
    ) -> None:
        """As in torchmetrics, after processes without images have learned the predicates from the others."""
        if not self.given:
            names = json.dumps(self.plan.names if self.known else ()).encode()
            text = torch.tensor(list(names), dtype=torch.uint8, device=self.sums.device)
            found = dist_sync_fn(text, group=process_group or self.process_group)
            heard = {tuple(json.loads(bytes(each.tolist()))) for each in found} - {()}
            if len(heard) > 1:
                raise MetricError("predicates: differ between the processes")
            if heard:
                self._learn(heard.pop())
        self.sums, self.replicates = self._sized()
        super()._sync_dist(dist_sync_fn, process_group)
