"""Theorem 1 as PyTorch: layers whose labels do not depend on the order in which nodes are listed.

- :class:`GPILayer`, :class:`Recurrent`: joint node and edge labels of flat graphs in PyG's tensor convention.
- :func:`permutation_gap`, :func:`assert_invariant`: does a model, ours or not, keep the promise?
- :class:`HashConstruction`: the proof that nothing else keeps it, as running code.
"""

from scenegpi.gpi.aggregate import Aggregation, aggregate
from scenegpi.gpi.attention import one_weight, recorded_attention
from scenegpi.gpi.flat import FlatGraph, complete_edges
from scenegpi.gpi.invariance import assert_invariant, permutation_breaks, permutation_gap
from scenegpi.gpi.layer import GPILayer, GPIOutput
from scenegpi.gpi.networks import MLP, Dense
from scenegpi.gpi.proof import HashConstruction, apply_black_box, dense_graph
from scenegpi.gpi.recurrent import Recurrent, RecurrentOutput
from scenegpi.gpi.segments import segment_max, segment_mean, segment_softmax, segment_sum

__all__ = [
    "MLP",
    "Aggregation",
    "Dense",
    "FlatGraph",
    "GPILayer",
    "GPIOutput",
    "HashConstruction",
    "Recurrent",
    "RecurrentOutput",
    "aggregate",
    "apply_black_box",
    "assert_invariant",
    "complete_edges",
    "dense_graph",
    "one_weight",
    "permutation_breaks",
    "permutation_gap",
    "recorded_attention",
    "segment_max",
    "segment_mean",
    "segment_softmax",
    "segment_sum",
]
