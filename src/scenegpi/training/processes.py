"""Several processes train one run: the first writes its files, the others wait for them."""

from __future__ import annotations

import os
import time
from pathlib import Path

from scenegpi.errors import DataError

LONGEST = 24 * 3600.0


def is_first_process() -> bool:
    """Whether this process makes the folder.

    RANK comes from torchrun, SLURM_PROCID from srun, the others from Lightning's own launcher.
    """
    one = next((name for name in ("RANK", "SLURM_PROCID") if name in os.environ), None)
    names = ("LOCAL_RANK", "NODE_RANK") if one is None else (one,)
    return all(os.environ.get(name, "0") == "0" for name in names)


def wait_for(path: Path, seconds: float = LONGEST) -> None:
    """Waits until the first process has written the file; DataError if it takes too long, or the parent has ended."""
    until, parent = time.monotonic() + seconds, os.getppid()
    while not path.is_file():
        if time.monotonic() > until or os.getppid() != parent:
            raise DataError(path, "the first process did not write it")
        time.sleep(0.2)
