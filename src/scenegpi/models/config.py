"""The settings of a model, as data: every choice is a field with a default that works; checkpoints include them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from scenegpi.models.systems import system_module
from scenegpi.options import bounded
from scenegpi.vision.config import VisionConfig

if TYPE_CHECKING:
    from torch import Tensor

    from scenegpi.models.scene_network import SceneNetwork

MAX_WIDTH = 1024


@dataclass(frozen=True)
class BaselineConfig:
    """The model without context: it reads each box, and each pair of boxes, by itself.

    Args:
        hidden, layers: of the network over pairs, and of the one over boxes. With 0 layers there is no network: the
            prior is passed through unchanged, so that a context reads exactly the distributions of another system.
        embedding: width of the learned vector of a label; a label distribution gives the mean.
        rank: width of the product of two such vectors, u_i * v_j, by which labels interact; 0 leaves it out.
        counts: whether the baseline reads the counts too. They depend on the other boxes: without them it reads each
            box and each pair by itself; a context always reads them.
        prior: what is known about a pair beforehand. Counts of predicates for its two labels: "backoff" (smoothed by
            what each label does alone) or "freq" (plain FREQ); or "given", the pair distributions of another system
            that the graphs carry.
        dropout, input_dropout: of hidden layers and of inputs.
        refine_labels: also correct the label distribution of each box (SGCls).
    """

    hidden: int = bounded(256, 1, MAX_WIDTH)
    layers: int = bounded(2, 0, 8)
    embedding: int = bounded(64, 1, MAX_WIDTH)
    rank: int = bounded(64, 0, MAX_WIDTH)
    counts: bool = True
    prior: Literal["backoff", "freq", "given"] = "backoff"
    dropout: float = bounded(0.2, 0.0, 0.95)
    input_dropout: float = bounded(0.1, 0.0, 0.95)
    refine_labels: bool = True


@dataclass(frozen=True)
class NetworkConfig:
    """What is built on the baseline, or replaces it; its `kind` is fixed for each class."""

    kind: str
    context = False
    """Whether a box can affect the predictions for others: only then can it improve a baseline."""

    @classmethod
    def of_kind(cls, kind: object) -> NetworkConfig:
        """The default settings of a kind; OptionError if the name is unknown."""
        if kind == ContextConfig.kind:
            return ContextConfig()
        return next(iter(system_module(kind).PRESETS.values()))

    def build(self, model: ModelConfig, labels: int, predicates: int, words: Sequence[Tensor]) -> SceneNetwork:
        """The network with random weights; `words` (C, w) and (1 + P, w) if it reads word vectors."""
        raise NotImplementedError

    @property
    def word_width(self) -> int:
        """Width of the word vectors that it reads; 0 for none."""
        return getattr(self, "words", 0)


@dataclass(frozen=True)
class ContextConfig(NetworkConfig):
    """The GPI layer on top: what it aggregates, and how.

    The paper has hidden = phi = alpha = 500, three hidden layers in rho and steps = 2; such an epoch costs five
    times as much.

    Args:
        aggregation: "sum" (no attention), "mean", "max", "neighbour" or "feature", over neighbours and over nodes.
        hidden, phi, alpha: widths of rho (two hidden layers), of s and of g.
        steps: of the recurrence.
        strict: exactly Theorem 1, rho does not read s.
        read_again: after the last step the baseline reads the pairs again, with the corrected labels. A predicate that
            was chosen for a wrong label is not kept when the label is corrected (SGCls); given labels change nothing.
        dropout, input_dropout: of hidden layers and of inputs.
        words: width of the word vectors of the most probable labels and predicates; 0 for none.
    """

    kind: Literal["gpi"] = "gpi"
    context = True
    aggregation: Literal["sum", "mean", "max", "neighbour", "feature"] = "feature"
    hidden: int = bounded(256, 1, MAX_WIDTH)
    phi: int = bounded(128, 1, MAX_WIDTH)
    alpha: int = bounded(128, 1, MAX_WIDTH)
    steps: int = bounded(1, 1, 16)
    strict: bool = False
    read_again: bool = False
    dropout: float = bounded(0.2, 0.0, 0.95)
    input_dropout: float = bounded(0.1, 0.0, 0.95)
    words: int = bounded(0, 0, MAX_WIDTH)

    def build(self, model: ModelConfig, labels: int, predicates: int, words: Sequence[Tensor]) -> SceneNetwork:
        from scenegpi.models.sgp import SGP

        return SGP(model, self, labels, predicates, *words)


@dataclass(frozen=True)
class ModelConfig:
    """A whole model; without `network` it is the baseline, without `vision` it uses only boxes and labels.

    A `network` is the GPI context, which is built on a baseline that is trained before and then frozen; or a system
    that the paper is compared with. Such a system replaces the baseline and has the same inputs and
    input settings; or, with `on_baseline`, it replaces the context.
    """

    baseline: BaselineConfig = BaselineConfig()
    network: NetworkConfig | None = None
    vision: VisionConfig | None = None
    on_baseline: bool = False

    def __post_init__(self) -> None:
        if self.on_baseline and (self.network is None or not self.network.context):
            raise ValueError("on_baseline: only a system with context can take the place of a context")

    @property
    def context(self) -> ContextConfig | None:
        """The GPI context, if that is the network."""
        return self.network if isinstance(self.network, ContextConfig) else None

    @property
    def system(self) -> str | None:
        """The compared system, if that is the network."""
        return None if self.network is None or self.context is not None else self.network.kind

    @property
    def two_stages(self) -> bool:
        """Whether a baseline is trained first, and then what is built on it."""
        return self.context is not None or self.on_baseline

    def first_stage(self) -> ModelConfig:
        """The baseline alone."""
        return replace(self, network=None, on_baseline=False)

    @property
    def words(self) -> int:
        """Width of the word vectors that it reads; 0 for none."""
        return 0 if self.network is None else self.network.word_width

    def with_words(self, width: int) -> ModelConfig:
        """The same model with word vectors of another width."""
        network: Any = self.network
        return replace(self, network=replace(network, words=width)) if self.words else self
