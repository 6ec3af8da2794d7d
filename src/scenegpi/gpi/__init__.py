"""Theorem 1 as PyTorch: layers whose labels do not depend on the order in which nodes are listed.

- `GPILayer`, `Recurrent`: joint node and edge labels of flat graphs in PyG's tensor convention.
- `permutation_gap`, `assert_invariant`: test whether any model has this invariance.
- `HashConstruction`: the proof that only such layers have it, as running code.
"""

from typing import TYPE_CHECKING

from scenegpi.lazy import lazy

if TYPE_CHECKING:
    from scenegpi.gpi.flat import FlatGraph, complete_edges
    from scenegpi.gpi.invariance import assert_invariant, permutation_gap
    from scenegpi.gpi.layer import GPILayer, GPIOutput, recorded_attention
    from scenegpi.gpi.networks import MLP, Dense
    from scenegpi.gpi.proof import HashConstruction, apply_black_box, dense_graph
    from scenegpi.gpi.recurrent import Recurrent, RecurrentOutput
    from scenegpi.gpi.segments import Aggregation, segment_max, segment_mean, segment_softmax, segment_sum

__getattr__, __dir__, __all__ = lazy(__name__)
