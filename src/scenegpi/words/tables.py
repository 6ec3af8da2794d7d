"""Word vectors of a vocabulary as tables that a layer looks up by class: `x_table` and `edge_table` of a GPI layer."""

from __future__ import annotations

import torch
from torch import Tensor

from scenegpi.vocabulary import Vocabulary
from scenegpi.words.vectors import WordVectors


def label_table(words: WordVectors, vocabulary: Vocabulary) -> Tensor:
    """(C, d): row c is the vector of label c."""
    return torch.from_numpy(words.table(vocabulary.objects))


def predicate_table(words: WordVectors, vocabulary: Vocabulary) -> Tensor:
    """(1 + P, d): row 0, "no relation", is zero; row p + 1 is the vector of predicate p."""
    table = torch.from_numpy(words.table(vocabulary.predicates))
    return torch.cat([table.new_zeros(1, words.dim), table])
