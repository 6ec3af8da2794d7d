"""A second device for tests on a machine that has one: tensors that hold numbers and say that they are elsewhere.

As with CUDA, an operation on tensors of two devices is an error, apart from copies, CPU indices and CPU scalars; what is
made with `device=OTHER` is there; only `.cpu()` brings it back. (FakeTensorMode
holds no numbers, so that whatever depends on them stops it, and a CPU build of torch has neither gradients nor indexing
on its fake CUDA device.)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

OTHER = torch.device("lazy:0")  # the one device of a CPU build that takes gradients and has no code of its own
MIXED = ("_to_copy", "copy_", "to", "index", "index_put", "index_put_")


class Elsewhere(Tensor):
    """A CPU tensor that says that it is on `OTHER`."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> Elsewhere:
        with torch.inference_mode(False):  # else a view of a weight could not be told
            made = Tensor._make_wrapper_subclass(
                cls, held.shape, held.stride(), held.storage_offset(), dtype=held.dtype, device=OTHER
            )
        made.held = held.detach()
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            if func is Tensor.new_tensor:  # the one that no mode sees
                return Elsewhere(torch.tensor(args[1], dtype=(kwargs or {}).get("dtype", args[0].dtype)))
            if func in (Tensor.__getitem__, Tensor.__setitem__) and isinstance(args[1], tuple):
                where = tuple(torch.tensor(each) if isinstance(each, list) else each for each in args[1])
                args = (args[0], where, *args[2:])
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


class SecondDevice(TorchDispatchMode):
    """While it lasts, `device=OTHER` makes tensors there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


def run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
    there = any(isinstance(each, Elsewhere) for each in tensors)
    name = func.overloadpacket.__name__
    if there and name not in MIXED:
        left = [each for each in tensors if not isinstance(each, Elsewhere) and each.dim()]
        if left:
            raise RuntimeError(f"{name}: tensors on two devices, {tuple(left[0].shape)} on the CPU")
    named = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.device)]
    there = named[0].type == OTHER.type if named else there
    args_, kwargs_ = tree_map(_here, (args, kwargs))
    out = func(*args_, **kwargs_)
    if func._schema.is_mutable:
        return args[0] if isinstance(out, Tensor) else out
    return tree_map(lambda each: Elsewhere(each) if isinstance(each, Tensor) else each, out) if there else out


def _here(each: Any) -> Any:
    if isinstance(each, torch.device):
        return torch.device("cpu")
    return each.held if isinstance(each, Elsewhere) else each


def moved(module: nn.Module) -> nn.Module:
    """With all that it holds there, in place."""
    for each in module.modules():
        for name, value in each._parameters.items():
            if value is not None:
                each._parameters[name] = nn.Parameter(Elsewhere(value.data), value.requires_grad)
        for name, value in each._buffers.items():
            each._buffers[name] = value if value is None else Elsewhere(value)
    return module
