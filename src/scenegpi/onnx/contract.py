"""A photo model in the form that SGG-Benchmark's programs read: one letterboxed frame in, boxes and relations out.

The frame holds a photo between bars of grey; they are cut off before the network reads the photo. Relations are chosen
as a `Predictor` does by default: rare predicates are preferred a little, one direction of a pair, one of two boxes that
show one thing, at most 20, and who may be a man or a woman is a person. Scores are geometric means of the probabilities
that a `Predictor` multiplies: the order is the same, and programs that leave out boxes below 0.2 or relations below 0.1
show what a `Predictor` gives.
"""

from __future__ import annotations

import json

import torch
from torch import Tensor, nn

from scenegpi.models.build import SceneModel
from scenegpi.onnx.operators import stretch
from scenegpi.onnx.photo import FindModule, related
from scenegpi.pairs import repeats
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.kinds import broader, kinds_of

SIDE = 640
GREY = 114
INFORMATIVE = 0.3
FOUND_RELATION, LAST_RELATION = 0.05, 0.002
TOP = 20
CONSIDERED = 512


class SggBenchmarkModule(nn.Module):
    """A frame -> boxes with labels and scores, relations with scores."""

    weight: Tensor
    plausible: Tensor
    members: Tensor
    broad: Tensor

    def __init__(self, model: SceneModel) -> None:
        super().__init__()
        self.find = FindModule(model)
        labels, predicates = len(model.vocabulary.objects), len(model.vocabulary.predicates)
        counts = model.relation_counts
        weight, roles = torch.ones(predicates), torch.ones(2, labels, predicates, dtype=torch.bool)
        if counts is not None:
            weight = torch.from_numpy(counts.shares**-INFORMATIVE)
            roles = torch.stack([torch.from_numpy(counts.as_subject), torch.from_numpy(counts.as_object)])
        self.register_buffer("weight", weight)
        self.register_buffer("plausible", roles)
        kinds = kinds_of(model.vocabulary)
        members, broad = (torch.eye(labels), torch.arange(labels)) if kinds is None else map(torch.from_numpy, kinds)
        self.register_buffer("members", members)
        self.register_buffer("broad", broad)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """images (1, 3, SIDE, SIDE), 0 to 1 -> (N, 6) x1, y1, x2, y2, label, score; (M, 5) as `relations`."""
        image = (images[0].permute(1, 2, 0) * 255).round().clamp(0, 255).to(torch.uint8)
        low, size = photo_within(image)
        extent = size.double()
        found, sure, dist = self.find.finder.found(stretch(image, low, size, self.find.finder.side), extent)
        labels, pair_dist, pairs = related(self.find.layout, found, extent, dist)
        score, label = labels.max(1)
        label, score = broader(labels, label, score, self.members, self.broad)
        score = score * sure
        columns = [(found + low.repeat(2)).float(), (label[:, None] + 1).float(), score[:, None].sqrt()]
        boxes = torch.cat(columns, 1)
        return boxes, self.relations(pair_dist, pairs, label, score, found)

    def relations(self, dist: Tensor, pairs: Tensor, label: Tensor, score: Tensor, boxes: Tensor) -> Tensor:
        """(M, 5) subject row, object row, predicate, triplet score, predicate score; best first."""
        some = dist[:, 1:].double()
        weighed = some * self.weight
        weighed = weighed / weighed.sum(1, keepdim=True).clamp_min(1e-300) * some.sum(1, keepdim=True)
        sure, best = weighed.float().max(1)
        subject, other = pairs[0], pairs[1]
        triplet = sure * score[subject] * score[other]
        plausible = self.plausible[0][label[subject], best] & self.plausible[1][label[other], best]
        rank = torch.where(plausible & (triplet >= LAST_RELATION), triplet, -1)
        # Pairs are listed by subject, then object, without those of a box and itself.
        back = other * (score.shape[0] - 1) + subject - (subject > other).long()
        first = (rank[back] > rank) | ((rank[back] == rank) & (other < subject))
        rank, order = torch.where(first, -1, rank).sort(stable=True, descending=True)
        rank, order = rank[:CONSIDERED], order[:CONSIDERED]
        again = repeats(subject[order], other[order], best[order], torch.arange(rank.shape[0]), label, boxes)
        rank, order = rank[~again], order[~again]
        place = torch.arange(rank.shape[0])
        kept = order[(rank >= 0) & (place < TOP) & ((rank >= FOUND_RELATION) | (place == 0))]
        columns = [subject[kept], other[kept], best[kept] + 1, triplet[kept] ** (1 / 3), sure[kept]]
        return torch.stack([each.float() for each in columns], 1)


def photo_within(image: Tensor) -> tuple[Tensor, Tensor]:
    """The left upper corner, and width and height, both (2,) int64, of what is not grey bars in a frame (S, S, 3)."""
    shown = (image.int() != GREY).any(2)
    low, high = [], []
    for axis in (0, 1):
        line = shown.any(axis).int()
        low.append(line.argmax())
        high.append(image.shape[0] - line.flip(0).argmax())
    corner = torch.stack(low)
    return corner, torch.stack(high) - corner


def class_names(vocabulary: Vocabulary) -> dict[str, str]:
    """The metadata that names labels (the first is 1) and predicates (0 is the background)."""
    names = {"obj_classes": vocabulary.objects, "rel_classes": ("__background__", *vocabulary.predicates)}
    # A demo of theirs splits at commas and cuts the first character off each part: the first name needs a space, too.
    return {key: "[ " + json.dumps(list(value), ensure_ascii=False)[1:] for key, value in names.items()}
