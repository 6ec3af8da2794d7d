"""Photos of one data set that a network was trained on as part of another."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path


def known_photos(files: Iterable[Path], trained: Path | None) -> set[str]:
    """Names of photos that `files` map to ids of another data set, where `trained` holds <id>.jpg of any of them.

    `trained` is the folder of the photos that the network was trained on; without it all photos named count as known.
    """
    return {
        name
        for file in files
        for name, ids in json.loads(file.read_text()).items()
        if trained is None or any((trained / f"{i}.jpg").is_file() for i in ids)
    }
