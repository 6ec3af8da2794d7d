"""Memory for what is kept of every edge until the backward pass.

Large fresh memory is slow to touch: the system hands it out in pages of 4 KB, one fault each, and takes it back after
every step. Asking for large pages (Linux) makes it two to three times faster; elsewhere this is ``torch.empty``.
"""

import contextlib
import mmap

import torch
from torch import Tensor

__all__ = ["large_empty"]

_WORTH_IT = 4 * 2**20


def large_empty(rows: int, width: int, like: Tensor) -> Tensor:
    """Uninitialised ``(rows, width)`` with the type and device of ``like``."""
    size = rows * width * like.element_size()
    if size < _WORTH_IT or like.device.type != "cpu" or not hasattr(mmap, "MADV_HUGEPAGE"):
        return like.new_empty(rows, width)
    block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # a kernel without large pages: the memory is as good, only slower
        block.madvise(mmap.MADV_HUGEPAGE)
    # The tensor keeps the block alive, and its end returns it.
    return torch.frombuffer(block, dtype=like.dtype).view(rows, width)
