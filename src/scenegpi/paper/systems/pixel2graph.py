r"""Pixel2Graph (Newell and Deng 2017) with given boxes: the layout as a picture, a graph read from its cells.

The boxes of an image are drawn on a grid: the filled box times a vector of its label, and its centre times another.
An hourglass turns the picture into features; at a cell, slots say

- at the centre of a box: its tag (and a correction of its label), a slot for each box that lies there, by size;
- at the middle of two boxes: is there a relation, which predicate, and the tags of its subject and its object.

A slot belongs to the pair of boxes whose tags t_a are nearest to the two tags of the slot:

.. math:: P(\text{related}_{ij}) = \max_{\text{slots of } (i, j)} \sigma(H) \sigma(s), \qquad
          P(r \mid \text{related}) = \text{softmax of that slot}

Relations are read at the middle of *all* pairs, never at the places of the true ones. Its loss is its own: the true
relations of a cell are matched to its slots by the best of all orders of the slots, and tags learn by

.. math:: \text{pull} = \|t - t_a\|^2, \qquad \text{push} = \text{mean}_{a \ne b} \max(0, m - \|t_a - t_b\|)^2
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.nn.functional import cross_entropy, interpolate, logsigmoid, max_pool2d, one_hot, softplus

from scenegpi.features.batch import SceneBatch
from scenegpi.gpi.networks import MLP
from scenegpi.models.config import ModelConfig
from scenegpi.models.scene_network import SceneLogits
from scenegpi.options import bounded
from scenegpi.paper.systems.reader import Reading
from scenegpi.paper.systems.sequences import Padding, reading_order
from scenegpi.paper.systems.system import Answer, System, SystemConfig

GRID, DEPTH = 32, 3
"""Height and width of the picture, and how often the hourglass halves it."""
AREA = GRID**2
TAGS = 8
"""Width of an associative embedding."""
OBJECT_SLOTS, RELATION_SLOTS = 3, 6
"""How many boxes, and relations, a cell can hold."""
APART = 8.0
"""Distance that the tags of different boxes should keep."""
UNSEEN = -18.0
"""Log-probability of a relation between boxes that no slot belongs to."""
SAMPLED = 200
"""Cells of a heatmap that are compared with the truth, besides the true ones."""


class Slots(NamedTuple):
    """Outputs of Q cells, S slots each: `score` (Q, S), `classes` (Q, S, P), tags `subject` and `object` (Q, S, d)."""

    score: Tensor
    classes: Tensor
    subject: Tensor
    object: Tensor


class Hourglass(nn.Module):
    """Features at half, a quarter, an eighth of the size, and back up, each added to what had that size.

    (G, c, S, S) -> (G, c, S, S); S must be divisible by 2 ** depth.
    """

    def __init__(self, channels: int, depth: int) -> None:
        super().__init__()
        self.beside, self.down, self.up = (Residual(channels) for _ in range(3))
        self.inner: nn.Module = Hourglass(channels, depth - 1) if depth > 1 else Residual(channels)

    def forward(self, x: Tensor) -> Tensor:
        low = self.up(self.inner(self.down(max_pool2d(x, 2))))
        return self.beside(x) + interpolate(low, scale_factor=2.0, mode="nearest")


class Residual(nn.Module):
    """x + convolution(ReLU(x))."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.convolution(x.relu())


class Pixel2Graph(System):
    """A picture of boxes -> tags, slots, relations. Cells of all images are counted in a row: S = G * AREA of them."""

    probabilities, exportable = False, False

    def __init__(self, model: ModelConfig, config: Pixel2GraphConfig, labels: int, predicates: int) -> None:
        super().__init__(model, labels, predicates, embed=False)
        c = config.width
        self.filled, self.centre = (nn.Parameter(torch.randn(labels, c) * 0.3) for _ in range(2))
        self.enter = nn.Conv2d(c, c, 3, padding=1)
        self.hourglass = Hourglass(c, DEPTH)
        self.heat = nn.Linear(c, 2)
        self.object_head = MLP([c], [4 * c], OBJECT_SLOTS * (TAGS + labels))
        self.relation_head = MLP([c], [4 * c], RELATION_SLOTS * (1 + predicates + 2 * TAGS))

    def answer(self, reading: Reading) -> Answer:
        batch = reading.batch
        features = self.hourglass(self.enter(self.draw(reading))).permute(0, 2, 3, 1).flatten(0, 2)
        heat = self.heat(features)
        tags, nodes = self.objects(reading, features)
        cells = pair_cells(batch, batch.edge_index).unique()
        slots = self.slots(features[cells])
        related = logsigmoid(heat[cells, 1:]) + logsigmoid(slots.score)
        pairs = self.decode(batch, cells // AREA, related, slots, tags)
        return Answer(nodes, pairs, {"features": features, "heat": heat, "tags": tags})

    def draw(self, reading: Reading) -> Tensor:
        """The boxes as a picture (G, c, GRID, GRID)."""
        batch, dist = reading.batch, reading.dist
        places = Padding(batch.batch, batch.ptr)
        x1, y1, x2, y2 = on_grid(batch.boxes, batch).unbind(1)
        at = torch.arange(GRID, device=dist.device)
        columns = (at >= x1[:, None]) & (at <= x2[:, None])
        lines = (at >= y1[:, None]) & (at <= y2[:, None])
        inside = (lines[:, :, None] & columns[:, None]).flatten(1).to(dist.dtype)
        point = one_hot(box_cells(batch) % AREA, AREA).to(dist.dtype)
        picture = places.pad(dist @ self.filled).transpose(1, 2) @ places.pad(inside)
        picture = picture + places.pad(dist @ self.centre).transpose(1, 2) @ places.pad(point)
        return picture.unflatten(2, (GRID, GRID))

    def objects(self, reading: Reading, features: Tensor) -> tuple[Tensor, Tensor]:
        """features (S, c) -> tags (N, d), label corrections (N, C); boxes in one cell take its slots, larger first."""
        cells, order = box_cells(reading.batch), reading_order(reading.batch, reading.dist, "size")
        slot = torch.empty_like(cells).index_copy(0, order, place_in_group(cells[order]) % OBJECT_SLOTS)
        said = self.object_head(features[cells]).unflatten(1, (OBJECT_SLOTS, -1))
        mine = said[torch.arange(len(slot), device=slot.device), slot]
        return mine[:, :TAGS], mine[:, TAGS:]

    def slots(self, features: Tensor) -> Slots:
        """The relation slots of cells with features (Q, c)."""
        said = self.relation_head(features).unflatten(1, (RELATION_SLOTS, -1))
        score, classes, subject, object_ = said.split([1, self.num_classes - 1, TAGS, TAGS], 2)
        return Slots(score.squeeze(2), classes, subject, object_)

    def decode(self, batch: SceneBatch, image: Tensor, related: Tensor, slots: Slots, tags: Tensor) -> Tensor:
        """Log-probabilities (E, 1 + P); image (Q,) of each cell, related (Q, slots) log P(related) of each slot."""
        edges, predicates = batch.num_edges, self.num_classes - 1
        out = torch.cat([related.new_zeros(edges, 1), related.new_full((edges, predicates), UNSEEN)], 1)
        of = image[:, None].expand_as(related).flatten()
        with torch.no_grad():
            i, j = (nearest(part.flatten(0, 1), of, tags, batch) for part in (slots.subject, slots.object))
        real = (i != j).nonzero().flatten()
        size, start = (batch.ptr[1:] - batch.ptr[:-1])[of[real]], batch.ptr[of[real]]
        a, b = i[real] - start, j[real] - start
        edge = batch.edge_ptr[of[real]] + a * (size - 1) + b - (b > a).long()
        score = related.flatten()[real]
        by_score = torch.argsort(score, descending=True, stable=True)
        chosen = by_score[place_in_group(edge[by_score]) == 0]  # the best slot speaks for a pair
        p = score[chosen, None]
        none = torch.log1p(-p.exp().clamp_max(1 - 1e-6))
        logits = torch.cat([none, p + slots.classes.flatten(0, 1)[real[chosen]].log_softmax(1)], 1)
        return out.index_put((edge[chosen],), logits)

    def training_loss(self, batch: SceneBatch, out: SceneLogits, common: Tensor) -> Tensor:
        """Heatmaps, slots, classes, pull and push; labels where they are not given. The common loss is not used."""
        if out.extra is None:
            return common * 0
        features, heat, tags = out.extra["features"], out.extra["heat"], out.extra["tags"]
        loss = push(tags, batch, APART) + _heat_loss(heat[:, 0], box_cells(batch))
        loss = loss.index_add(0, batch.batch, cross_entropy(out.nodes[-1], batch.labels, reduction="none"))
        cells = pair_cells(batch, batch.edge_index[:, batch.relation_edge])
        if len(cells):
            loss = loss + _heat_loss(heat[:, 1], cells) + self._relation_loss(batch, cells, features, tags)
        return loss / batch.num_graphs

    def _relation_loss(self, batch: SceneBatch, cells: Tensor, features: Tensor, tags: Tensor) -> Tensor:
        """Loss (G,) of the slots at the cells (M,) of true rows: score, class and pull."""
        true, cell = cells.unique(return_inverse=True)
        slots, image = self.slots(features[true]), true // AREA
        place = place_in_group(cell)
        row = (place < RELATION_SLOTS).nonzero().flatten()  # a cell that is full holds no more
        at, place = cell[row], place[row]
        i, j = tags[batch.edge_index[:, batch.relation_edge[row]]]
        target = batch.relation_class[row] - 1
        with torch.no_grad():
            likely = slots.classes[at].softmax(2)[torch.arange(len(row), device=row.device), :, target]
            far = (slots.subject[at] - i[:, None]).square().sum(2) + (slots.object[at] - j[:, None]).square().sum(2)
            gain = likely.new_zeros(len(true), RELATION_SLOTS, RELATION_SLOTS)
            gain[at, place] = likely - far / (2 * APART**2)
            slot = match(gain)[at, place]
        taken = torch.zeros_like(slots.score)
        taken[at, slot] = 1
        each = cross_entropy(slots.classes[at, slot], target, reduction="none")
        each = each + (slots.subject[at, slot] - i).square().sum(1) + (slots.object[at, slot] - j).square().sum(1)
        total = each.new_zeros(batch.num_graphs)
        total = total.index_add(0, image, bce(slots.score, taken, reduction="none").sum(1))
        return total.index_add(0, image[at], each)


def _heat_loss(heat: Tensor, cells: Tensor) -> Tensor:
    """Binary cross-entropy (G,) of a heatmap (S,) at the true cells and at some others."""
    true = torch.zeros_like(heat).index_fill(0, cells, 1).view(-1, AREA)
    heat = heat.view(-1, AREA)
    some = torch.rand_like(heat) < SAMPLED / AREA
    near = softplus(-heat) * true
    far = softplus(heat) * (some & (true == 0))
    return near.sum(1) + far.sum(1) * true.sum(1) / some.sum(1).clamp_min(1)


def push(tags: Tensor, batch: SceneBatch, margin: float) -> Tensor:
    """tags (N, d) of the boxes -> (G,), the mean over ordered pairs of an image; 0 where all are a margin apart."""
    i, j = batch.edge_index
    # The square root has no gradient at 0, where two boxes have the same tag.
    distance = (tags[i] - tags[j]).square().sum(1).clamp_min(1e-6).sqrt()
    loss = (margin - distance).clamp_min(0).square()
    total = tags.new_zeros(batch.num_graphs).index_add(0, batch.batch[i], loss)
    return total / (batch.edge_ptr[1:] - batch.edge_ptr[:-1]).clamp_min(1)


def match(gain: Tensor) -> Tensor:
    """The slot (Q, S) of each true relation: of all orders of the slots the one with the largest sum of gains.

    gain (Q, S, S) is that of relation k in slot s, 0 where there is no relation k.
    """
    orders = _orders(gain.shape[1]).to(gain.device)
    total = sum(gain[:, k].index_select(1, orders[:, k]) for k in range(gain.shape[1]))
    assert isinstance(total, Tensor)
    return orders[total.argmax(1)]


@cache
def _orders(slots: int) -> Tensor:
    return torch.tensor(list(permutations(range(slots))))


def nearest(tags: Tensor, image: Tensor, boxes: Tensor, batch: SceneBatch) -> Tensor:
    """The box whose tag is nearest: tags (M, d) of slots of images (M,), boxes (N, d) -> (M,)."""
    places = Padding(batch.batch, batch.ptr)
    padded = places.pad(boxes)
    far = tags.new_zeros(1).masked_fill(~places.mask, torch.inf)[image]
    for k in range(tags.shape[1]):  # not all at once: (M, T, d) is large
        far = far + (tags[:, k, None] - padded[:, :, k][image]).square()
    return batch.ptr[image] + far.argmin(1)


def on_grid(points: Tensor, batch: SceneBatch) -> Tensor:
    """Points (N, 2) or corners (N, 4) of boxes in pixels -> columns and lines of the grid."""
    scale = GRID / batch.sizes[batch.batch].to(points.dtype)
    return (points * scale.repeat(1, points.shape[1] // 2)).floor().long().clamp(0, GRID - 1)


def box_cells(batch: SceneBatch) -> Tensor:
    """The cell (N,) at the centre of each box."""
    return pair_cells(batch, torch.arange(len(batch.boxes), device=batch.boxes.device).expand(2, -1))


def pair_cells(batch: SceneBatch, pairs: Tensor) -> Tensor:
    """The cell (M,) in the middle between the centres of the boxes of pairs (2, M)."""
    centres = on_grid((batch.boxes[:, :2] + batch.boxes[:, 2:]) / 2, batch)
    x, y = torch.div(centres[pairs[0]] + centres[pairs[1]], 2, rounding_mode="floor").unbind(1)
    return batch.batch[pairs[0]] * AREA + y * GRID + x


def place_in_group(group: Tensor) -> Tensor:
    """(M,) how many equal entries of group (M,) come before each entry."""
    order = torch.argsort(group, stable=True)
    place = torch.arange(len(group), device=group.device) - torch.searchsorted(group[order], group[order])
    return torch.empty_like(place).index_copy(0, order, place)


@dataclass(frozen=True)
class Pixel2GraphConfig(SystemConfig):
    """Pixel2Graph with given boxes, drawn as a picture; `width` is the number of channels of the hourglass."""

    kind: Literal["pixel2graph"] = "pixel2graph"
    network = Pixel2Graph
    width: int = bounded(32, 1, 256)


PRESETS = {"pixel2graph-boxes": Pixel2GraphConfig()}
