r"""Reading attention off a model while it runs as it always does.

.. math:: s_i = \sum_j w_{ij}\, \phi(z_i, z_{ij}, z_j), \qquad g = \sum_i v_i\, \alpha(z_i, s_i)

A layer computes the weights anyway and gives them with ``return_attention=True``. Inside a model nobody passes that
on, so hooks do: each layer is asked for its weights, and what it gives is kept.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from scenegpi.gpi.layer import GPILayer, GPIOutput


@contextmanager
def recorded_attention(model: nn.Module) -> Iterator[list[GPIOutput]]:
    """The outputs, weights included, of every call of every GPI layer in `model`, in the order of the calls.

    >>> with recorded_attention(model) as calls:
    ...     model(batch)
    >>> calls[-1].edge_attention    # (E, 1) or (E, phi_dim), sums to one over the neighbours of each node
    """
    calls: list[GPIOutput] = []

    def ask(layer: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return args, {**kwargs, "return_attention": True}

    def keep(layer: nn.Module, args: Any, output: GPIOutput) -> None:
        if not calls or calls[-1] is not output:  # a layer that is given a graph object calls itself
            calls.append(output)

    hooks = []
    for layer in model.modules():
        if isinstance(layer, GPILayer):
            hooks += [layer.register_forward_pre_hook(ask, with_kwargs=True), layer.register_forward_hook(keep)]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()
