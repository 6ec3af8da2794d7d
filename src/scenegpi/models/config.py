"""What a model is made of, as data: every choice a field with a default that works; a checkpoint carries it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from scenegpi.models.systems.config import (
    MAX_WIDTH,
    GraphRcnnConfig,
    ImpConfig,
    LuConfig,
    MotifsConfig,
    PeNetConfig,
    Pixel2GraphConfig,
    TransformerConfig,
    VctreeConfig,
)
from scenegpi.options import bounded
from scenegpi.vision.config import VisionConfig


@dataclass(frozen=True)
class BaselineConfig:
    """The model without context: it reads each box, and each pair of boxes, by itself.

    Args:
        hidden, layers: of the network over pairs, and of the one over boxes. With 0 layers there is no network: the
            prior is passed on as it is, so that a context reads exactly the distributions of another system.
        embedding: width of the learned vector of a label; of a label distribution it is the mean.
        rank: width of the product of two such vectors, u_i * v_j, by which labels interact; 0 leaves it out.
        counts: the baseline itself reads the counts too. They depend on the other boxes: without them it reads each
            box, and each pair, by itself; a context reads them in any case.
        prior: what is known about a pair beforehand. Counts of predicates for its two labels: "backoff" (smoothed by
            what each label does alone) or "freq" (plain FREQ); "given", the pair distributions of another system
            that the graphs carry; or "none".
        smoothing: how many counts the back-off is worth.
        dropout, input_dropout: of hidden layers and of inputs.
        refine_labels: also correct the label distribution of each box (SGCls).
    """

    hidden: int = bounded(256, 1, MAX_WIDTH)
    layers: int = bounded(2, 0, 8)
    embedding: int = bounded(64, 1, MAX_WIDTH)
    rank: int = bounded(64, 0, MAX_WIDTH)
    counts: bool = True
    prior: Literal["backoff", "freq", "given", "none"] = "backoff"
    smoothing: float = bounded(3.0, 1e-3, 1e6)
    dropout: float = bounded(0.2, 0.0, 0.95)
    input_dropout: float = bounded(0.1, 0.0, 0.95)
    refine_labels: bool = True

    def __post_init__(self) -> None:
        if self.layers == 0 and self.prior == "none":
            raise ValueError("prior: without layers and without a prior nothing is left to predict from")


@dataclass(frozen=True)
class ContextConfig:
    """The GPI layer on top: what it aggregates, and how.

    The paper has hidden = phi = alpha = 500, three hidden layers in rho and steps = 2; an epoch of that costs five
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


@dataclass(frozen=True)
class ModelConfig:
    """A whole model; without `context` it is the baseline, without `vision` it reads boxes and labels only.

    At most one of `motifs` to `pixel2graph` is set: a system that the paper is compared with. It takes the baseline's
    place and reads what that reads, by the settings of `baseline`; or, `on_baseline`, the context's place, on a
    baseline that is trained before and stays as it is.
    """

    baseline: BaselineConfig = BaselineConfig()
    context: ContextConfig | None = None
    vision: VisionConfig | None = None
    motifs: MotifsConfig | None = None
    imp: ImpConfig | None = None
    graph_rcnn: GraphRcnnConfig | None = None
    lu: LuConfig | None = None
    transformer: TransformerConfig | None = None
    vctree: VctreeConfig | None = None
    pe_net: PeNetConfig | None = None
    pixel2graph: Pixel2GraphConfig | None = None
    on_baseline: bool = False

    def __post_init__(self) -> None:
        found = [name for name in (*SYSTEMS, "context") if getattr(self, name) is not None]
        if len(found) > 1:
            raise ValueError(f"{' and '.join(found)}: a model has one of them")
        able = self.imp or self.graph_rcnn or self.transformer or self.vctree or (self.motifs and self.motifs.context)
        if self.on_baseline and not able:
            raise ValueError("on_baseline: only a system with context can take the place of a context")

    @property
    def system(self) -> str | None:
        """The name of the system that is set."""
        return next((name for name in SYSTEMS if getattr(self, name) is not None), None)

    @property
    def two_stages(self) -> bool:
        """Whether a baseline is trained first, and then what stands on it."""
        return self.context is not None or self.on_baseline

    def first_stage(self) -> ModelConfig:
        """The baseline alone."""
        return replace(self, context=None, on_baseline=False, **dict.fromkeys(SYSTEMS))  # type: ignore[arg-type]

    @property
    def words(self) -> int:
        """Width of the word vectors that it reads; 0 for none."""
        if self.context is not None:
            return self.context.words
        if self.lu is not None:
            return self.lu.words if self.lu.language else 0
        return 0 if self.pe_net is None else self.pe_net.words

    def with_words(self, width: int) -> ModelConfig:
        """The same model with word vectors of another width."""
        name = "context" if self.context is not None else self.system
        return replace(self, **{name: replace(getattr(self, name), words=width)}) if name else self


SYSTEMS = ("motifs", "imp", "graph_rcnn", "lu", "transformer", "vctree", "pe_net", "pixel2graph")
