"""One thread for small jobs: on a busy machine, waiting for a second one can take ten times as long as the work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread(little: bool = True) -> Iterator[None]:
    """Torch uses one thread inside if the job is `little`, and as many as before otherwise."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1 if little else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
