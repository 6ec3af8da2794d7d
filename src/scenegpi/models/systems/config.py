"""What each compared system is made of, as data. Sizes are those trained here; the published ones are in docs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scenegpi.options import bounded

MAX_WIDTH = 1024
Bias = Literal["none", "counts", "trained"]
Order = Literal["left-right", "size", "confidence", "random", "list"]


@dataclass(frozen=True)
class MotifsConfig:
    """Neural Motifs (Zellers et al. 2018); without `context`, the row that the paper calls Baseline.

    Args:
        context: two LSTMs over the boxes of an image.
        order: in which they read the boxes. "list" takes them as they are listed, which no model should.
        draw: which of the random orders; they depend on the image's content, not on its listing.
        hidden, pool: widths of the LSTMs and of the product of subject, object and pair.
        object_layers, relation_layers: of the two LSTMs; every second layer runs backwards.
        bias: what label pairs add to the logits: nothing, training "counts" without the image's own (two learned
            scales), or a "trained" table that starts at the counts, as published.
        dropout, recurrent_dropout: of hidden layers, and of the state of an LSTM.
    """

    context: bool = True
    order: Order = "left-right"
    draw: int = bounded(0, 0, 2**31 - 1)
    hidden: int = bounded(256, 1, MAX_WIDTH)
    pool: int = bounded(512, 1, MAX_WIDTH)
    object_layers: int = bounded(2, 1, 8)
    relation_layers: int = bounded(4, 1, 8)
    bias: Bias = "counts"
    dropout: float = bounded(0.2, 0.0, 0.95)
    recurrent_dropout: float = bounded(0.1, 0.0, 0.95)


@dataclass(frozen=True)
class ImpConfig:
    """Iterative message passing (Xu et al. 2017), by default as Zellers et al. trained it again.

    Args:
        width: of the states of boxes and pairs.
        steps: of message passing.
        schedule: boxes read the old states of pairs ("synchronous"), or those just updated ("sequential", 2017).
        bias: as in `MotifsConfig`; the published system has none.
    """

    width: int = bounded(128, 1, MAX_WIDTH)
    steps: int = bounded(3, 0, 16)
    schedule: Literal["synchronous", "sequential"] = "synchronous"
    bias: Bias = "none"
    dropout: float = bounded(0.2, 0.0, 0.95)


@dataclass(frozen=True)
class GraphRcnnConfig:
    """Graph R-CNN (Yang et al. 2018), with the attention of the paper's text.

    Args:
        width, proposal_width: of the states, and of the network that proposes related pairs.
        keep, share: number of pairs of an image that are kept at most, and share of them.
        nms: pairs that overlap more than this with a likelier one are not kept; 1 keeps them, as in the released code.
            The paper suppresses proposals so (0.7); of given boxes, pairs that share a large box overlap, too.
        steps, score_steps: of the graph convolution over features, and over scores.
        attention: by score; without, all neighbours weigh the same, as in the released code.
        multiply: the probability that a pair is related multiplies its predicates'; the published system leaves it out.
        bias: as in `MotifsConfig`; the published system has none.
    """

    width: int = bounded(128, 1, MAX_WIDTH)
    proposal_width: int = bounded(64, 1, MAX_WIDTH)
    keep: int = bounded(128, 1, 4096)
    share: float = bounded(1.0, 0.01, 1.0)
    nms: float = bounded(1.0, 0.0, 1.0)
    steps: int = bounded(2, 0, 16)
    score_steps: int = bounded(2, 0, 16)
    attention: bool = True
    multiply: bool = False
    bias: Bias = "none"
    dropout: float = bounded(0.2, 0.0, 0.95)


@dataclass(frozen=True)
class LuConfig:
    """Visual module and language prior (Lu et al. 2016).

    Args:
        language: the prior by word vectors, and the ranking loss. Without, a classifier of pairs by their boxes alone:
            the network behind the row of this name in later papers' tables.
        hidden: width of the network over pairs.
        words: width of the word vectors.
        negatives: which pairs a true relation has to beat: "none" but annotated ones, as published, or all "pairs".
        clip: the visual score is at least 1, as in the released code; two negative factors make no large score.
        temperature: of the scores, where they become probabilities; it changes no order.
        frequency, similarity: weights of the losses "frequent above rare" and "similar words, similar scores".
    """

    language: bool = True
    hidden: int = bounded(256, 1, MAX_WIDTH)
    words: int = bounded(300, 1, MAX_WIDTH)
    negatives: Literal["none", "pairs"] = "pairs"
    clip: bool = True
    temperature: float = bounded(4.0, 1e-2, 1e3)
    frequency: float = bounded(0.05, 0.0, 1e3)
    similarity: float = bounded(0.002, 0.0, 1e3)
    dropout: float = bounded(0.2, 0.0, 0.95)


@dataclass(frozen=True)
class TransformerConfig:
    """Self-attention over the boxes of an image, as in Scene-Graph-Benchmark: no order at all.

    Args:
        width, heads, inner: of each layer.
        object_layers, relation_layers: before the labels, and between labels and relations.
        bias: as in `MotifsConfig`.
    """

    width: int = bounded(128, 1, MAX_WIDTH)
    heads: int = bounded(4, 1, 64)
    inner: int = bounded(512, 1, 4096)
    object_layers: int = bounded(4, 1, 16)
    relation_layers: int = bounded(2, 1, 16)
    bias: Bias = "counts"
    dropout: float = bounded(0.1, 0.0, 0.95)

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"heads: {self.heads} heads do not divide a width of {self.width}")


@dataclass(frozen=True)
class VctreeConfig:
    """VCTree (Tang et al. 2019): a tree over the boxes of an image.

    Args:
        hidden, pool: widths of the tree LSTMs, and of the product of subject, object and pair.
        score_width: of the network that scores links.
        bias: as in `MotifsConfig`.
    """

    hidden: int = bounded(128, 1, MAX_WIDTH)
    pool: int = bounded(256, 1, MAX_WIDTH)
    score_width: int = bounded(64, 1, MAX_WIDTH)
    bias: Bias = "counts"
    dropout: float = bounded(0.2, 0.0, 0.95)


@dataclass(frozen=True)
class PeNetConfig:
    """Prototype embedding network (Zheng et al. 2023): relations near the word vector of their predicate.

    Args:
        width: of the space of prototypes.
        words: width of the word vectors.
        margin, apart: how much nearer the right prototype must be, and how far prototypes stay from each other.
        prototypes: weight of these losses.
    """

    width: int = bounded(256, 1, MAX_WIDTH)
    words: int = bounded(300, 1, MAX_WIDTH)
    margin: float = bounded(1.0, 0.0, 1e3)
    apart: float = bounded(7.0, 0.0, 1e3)
    prototypes: float = bounded(1.0, 0.0, 1e3)
    dropout: float = bounded(0.2, 0.0, 0.95)


@dataclass(frozen=True)
class Pixel2GraphConfig:
    """Pixel2Graph (Newell and Deng 2017) with given boxes, drawn as a picture.

    Args:
        grid: height and width of the picture, a power of two.
        channels, depth: of the hourglass.
        tags: width of an associative embedding.
        object_slots, relation_slots: how many boxes, and relations, a cell can hold.
        apart: distance that the tags of different boxes should keep.
    """

    grid: int = bounded(32, 4, 128)
    channels: int = bounded(32, 1, 256)
    depth: int = bounded(3, 1, 6)
    tags: int = bounded(8, 1, 64)
    object_slots: int = bounded(3, 1, 8)
    relation_slots: int = bounded(6, 1, 6)
    apart: float = bounded(8.0, 0.0, 1e3)

    def __post_init__(self) -> None:
        if self.grid % 2**self.depth:
            raise ValueError(f"grid: {self.grid} cells cannot be halved {self.depth} times")
