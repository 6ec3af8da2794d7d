"""How boxes are selected for the model, and relations from its output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scenegpi.options import bounded, check_fields
from scenegpi.words.label_map import THRESHOLD

GIVEN_RELATION = 0.1
FOUND_RELATION, FOUND_PLAIN = 0.05, 0.035


@dataclass(frozen=True)
class PredictOptions:
    """Options of a `Predictor`.

    Args:
        labels: the use of given labels. "auto": labels without scores are believed; labels with scores are combined
            with what the photo shows, or believed if there is no photo or the model does not use it. "believed": given
            labels are kept (PredCls). "found": given labels are ignored; labels come from label distributions, the
            photo, or the scores of the labels (SGCls).
        nms: suppress boxes of one label that overlap a better one by more than this; 1 keeps all.
        max_boxes: keep at most this many boxes per image, the best ones.
        min_score: boxes that score less are left out.
        top: keep at most this many relations per image, the best ones; None keeps every pair whose best predicate is
            likelier than "no relation".
        min_relation: keep only relations with at least this score, P(subject) P(object) P(predicate); by default
            `GIVEN_RELATION`. Scores of found boxes include the chance that there is an object at all: there it is
            `FOUND_PLAIN` for relations of place and of ownership, which hold more often than they are annotated, and
            `FOUND_RELATION` for all others. A graph may have no such relation.
        similarity: minimum cosine for a match by word vectors (see LabelMap); above 1, word vectors are not used.
        informative: from 0 to 1, how much rare predicates are preferred to common ones (see `models.relation_counts`).
        tidy: of the two directions of a pair keep the better one ("man has head", not "head of man" as well), leave out
            relations in which a label has a role that it never had in training. For found boxes also: relate one of two
            boxes of the same thing; allow a thing one owner, one holder and one place; prefer the rarest of predicates
            nearly as probable as the best (see `scenegpi.prediction.rules`); say "person" for an uncertain "man" or
            "woman" (see `scenegpi.words.kinds`).
        distributions: keep the whole distributions of labels and pairs.
    """

    labels: Literal["auto", "believed", "found"] = "auto"
    nms: float = bounded(1.0, 0.0, 1.0)
    max_boxes: int = bounded(256, 1, 4096)
    min_score: float = bounded(0.0, 0.0, 1.0)
    top: int | None = bounded(20, 0, 10_000)
    min_relation: float | None = bounded(None, 0.0, 1.0)
    similarity: float = bounded(THRESHOLD, -1.0, 2.0)
    informative: float = bounded(0.3, 0.0, 1.0)
    tidy: bool = True
    distributions: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    def scoring(cls, task: Literal["predcls", "sgcls", "sgdet"], informative: float = 0.0) -> PredictOptions:
        """All boxes and whole distributions, for metrics: PredCls believes the labels, other tasks find them."""
        labels: Literal["believed", "found"] = "believed" if task == "predcls" else "found"
        return cls(labels, 1.0, 4096, 0.0, None, 0.0, informative=informative, tidy=False, distributions=True)
