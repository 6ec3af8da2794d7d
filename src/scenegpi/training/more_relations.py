r"""Relations of another annotation, added to the counts that a model's prior reads (`scenegpi.models.prior`).

In Visual Genome a person is mostly just "on" a surfboard; V-COCO says whether it is ridden, held or carried. A row of
the other annotation stands for sets of labels, its "person" for person, man, woman, ...; it is divided among the pairs
(a, b) of the two sets in proportion to the counted relations n_ab:

.. math:: n'_{abr} = n_{abr} + w \, m_r \, (n_{ab} + 1) / \sum_{a'b'} (n_{a'b'} + 1)

with m_r the rows of predicate r for these two sets, and a weight w. Pairs without a relation are not counted: the
other annotation lists only some actions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from scenegpi.data.open import open_dataset
from scenegpi.errors import DataError, OptionError
from scenegpi.files import read_object, write_json
from scenegpi.graph import SceneGraph
from scenegpi.models.build import SceneModel
from scenegpi.models.checkpoint import load_model, save_model
from scenegpi.models.prior import CountPrior
from scenegpi.models.shipped import find_model
from scenegpi.training.config import MoreRelations, TrainConfig
from scenegpi.training.folder import CONFIG, FINISHED, MODEL
from scenegpi.training.processes import is_first_process
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.everyday import STANDS_FOR, may_be

Row = tuple[tuple[int, ...], tuple[int, ...], int]
"""Labels that subject and object may have, and the predicate."""


def add_relations(config: TrainConfig, vocabulary: Vocabulary, folder: Path) -> None:
    """Adds relations to the counts of the model `config.start`, and writes it into the run's folder."""
    if config.start is None:
        raise OptionError("data.more.only: needs a model to start from (--start)")
    model = load_model(config.start)
    if model.labels != vocabulary:
        raise DataError(config.start, "is not a model with this data set's labels")
    added = count_more(model, config.data.more)
    if is_first_process():
        made = read_object(find_model(config.start) / CONFIG).get("training", {})
        record = made | {"more relations": {"counted": added, "weight": config.data.more.weight}}
        save_model(model, folder / MODEL, {}, record, overwrite=True, half=config.half)
        write_json(folder / FINISHED, {"relations": added})


def count_more(model: SceneModel, config: MoreRelations) -> int:
    """Adds the relations of another annotation to a model's counts (in place); returns how many were added."""
    if not config.path:
        return 0
    prior = model.prior
    if not isinstance(prior, CountPrior):
        raise DataError(config.path, "the model has no counts to add relations to")
    dataset = open_dataset(config.path)
    rows = known_rows(dataset, dataset.vocabulary, model.labels)
    if not rows:
        raise DataError(config.path, "no relation has a predicate and labels that the model knows")
    prior.set_counts(with_rows(prior.counts, rows, config.weight))
    return sum(rows.values())


def known_rows(graphs: Iterable[SceneGraph], theirs: Vocabulary, ours: Vocabulary) -> Counter[Row]:
    """How often each predicate joins two sets of our labels; rows with words that we don't have are left out."""
    sets = [labels_of(name, ours.objects) for name in theirs.objects]
    predicate = [ours.predicate_index.get(name) for name in theirs.predicates]
    found: Counter[Row] = Counter()
    for graph in graphs:
        for i, j, r in np.unique(graph.relations, axis=0).tolist():
            subject, object_, number = sets[graph.labels[i]], sets[graph.labels[j]], predicate[r]
            if subject and object_ and number is not None:
                found[subject, object_, number] += 1
    return found


def labels_of(name: str, labels: Sequence[str]) -> tuple[int, ...]:
    """Indices of the labels that `name` in another annotation may stand for; none if nothing matches."""
    words = may_be(name, labels) or (STANDS_FOR.get(name, ""),)
    return tuple(labels.index(word) for word in words if word in labels)


def with_rows(counts: Tensor, rows: Counter[Row], weight: float) -> Tensor:
    """counts ``(C, C, 1 + P)`` with the rows added, whole numbers again."""
    whole = counts.double()
    related = whole[:, :, 1:].sum(2) + 1
    for (subjects, objects, predicate), number in rows.items():
        at = torch.tensor(subjects)[:, None], torch.tensor(objects)
        share = related[at] / related[at].sum()
        whole[(*at, 1 + predicate)] += weight * number * share
    return whole.round().to(counts.dtype)
