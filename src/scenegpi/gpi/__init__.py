"""Theorem 1 as PyTorch: layers whose labels do not depend on the order in which nodes are listed."""

from scenegpi.gpi.aggregate import Aggregation, aggregate
from scenegpi.gpi.flat import FlatGraph, complete_edges
from scenegpi.gpi.layer import GPILayer, GPIOutput
from scenegpi.gpi.networks import MLP, Dense
from scenegpi.gpi.recurrent import Recurrent, RecurrentOutput
from scenegpi.gpi.segments import SegmentSoftmax, segment_max, segment_mean, segment_softmax, segment_sum

__all__ = [
    "MLP",
    "Aggregation",
    "Dense",
    "FlatGraph",
    "GPILayer",
    "GPIOutput",
    "Recurrent",
    "RecurrentOutput",
    "SegmentSoftmax",
    "aggregate",
    "complete_edges",
    "segment_max",
    "segment_mean",
    "segment_softmax",
    "segment_sum",
]
