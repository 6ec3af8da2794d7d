"""Memory for what is kept of every edge until the backward pass, used again step after step.

Large fresh memory is slow to touch: the system hands it out page by page, zeroed, and takes it back when it is freed;
in a training loop that is a good part of the time. Blocks are therefore kept, up to a limit, when the last tensor on
them is gone.
"""

import threading
import weakref

import numpy as np
import torch
from torch import Tensor

__all__ = ["BlockPool", "large_empty"]

_LARGE = 2**20


class BlockPool:
    """Blocks of bytes that no tensor uses, at most ``limit`` bytes of them."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._free: list[np.ndarray] = []
        # Reentrant: a block can come back, from the garbage collector, while this thread is here.
        self._lock = threading.RLock()

    def take(self, size: int) -> np.ndarray:
        """A block of ``size`` bytes that gives itself back: a free one if one fits well, or new."""
        with self._lock:
            fitting = [k for k, block in enumerate(self._free) if size <= block.nbytes <= 2 * size]
            best = min(fitting, key=lambda k: self._free[k].nbytes, default=None)
            block = np.empty(-(-size * 9 // 8), dtype=np.uint8) if best is None else self._free.pop(best)
        # The tensor holds on to this view; when it dies no tensor, saved or not, is left on the block. It must not be
        # sliced again: NumPy would tie the slice to the block itself.
        lease = block[:size]
        weakref.finalize(lease, self._give_back, block).atexit = False
        return lease

    def free_bytes(self) -> int:
        """Bytes held and not in use."""
        return sum(block.nbytes for block in self._free)

    def clear(self) -> None:
        """Returns all free blocks to the system."""
        with self._lock:
            self._free.clear()

    def _give_back(self, block: np.ndarray) -> None:
        with self._lock:
            self._free.append(block)
            while self.free_bytes() > self.limit:
                self._free.pop(0)


POOL = BlockPool(limit=2 * 2**30)


def large_empty(rows: int, width: int, like: Tensor) -> Tensor:
    """Uninitialised ``(rows, width)`` with the type and device of ``like``; on the CPU and if large, from the pool."""
    size = rows * width * like.element_size()
    if size < max(_LARGE, 1) or like.device.type != "cpu":
        return like.new_empty(rows, width)
    return torch.from_numpy(POOL.take(size)).view(like.dtype).view(rows, width)
