"""The interface of all networks that turn a batch of scenes into logits, ours and those we compare with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple, Protocol

from torch import Tensor, nn

if TYPE_CHECKING:
    from scenegpi.features.batch import SceneBatch
    from scenegpi.models.baseline import Baseline
    from scenegpi.models.layout_inputs import LayoutInputs
    from scenegpi.models.prior import CountPrior, GivenPrior


class SceneLogits(NamedTuple):
    """Logits after every step, first to last: `nodes[t]` (N, C), `edges[t]` (E, 1 + P), column 0 "no relation".

    `extra` is further input for a system's own loss.
    """

    nodes: list[Tensor]
    edges: list[Tensor]
    extra: dict[str, Tensor] | None = None


class FrontEnd(Protocol):
    """How a network reads boxes and pairs, and its prior over pairs of labels."""

    @property
    def inputs(self) -> LayoutInputs: ...

    @property
    def prior(self) -> CountPrior | GivenPrior: ...


class SceneNetwork(nn.Module, ABC):
    """Batch -> logits of boxes and pairs.

    `probabilities` says whether its outputs are probabilities; scores that only rank are not calibrated. `exportable`:
    whether it can be an ONNX file; a network that works box after box can't.
    """

    probabilities = True
    exportable = True

    @property
    @abstractmethod
    def front(self) -> FrontEnd:
        """Its reader of batches."""

    @property
    @abstractmethod
    def first_stage_network(self) -> Baseline | None:
        """The baseline that it is or is built on; None for a system without one."""

    def training_loss(self, batch: SceneBatch, out: SceneLogits, common: Tensor) -> Tensor:
        """The loss to minimise, (G,) to be added up, from the loss that all networks share."""
        return common

    def set_counts(self, counts: Tensor) -> None:
        """Receives the training counts of predicates by labels, (C, C, 1 + P), in addition to the prior."""
