"""One thread for little work: on a busy machine, to wait for a second one can take ten times as long as the work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread(little: bool = True) -> Iterator[None]:
    """Torch works with one thread inside, if the work is `little`; else with as many as it had."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if little else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
