"""A worker process that reads hostile files, with limits on memory and time (tools/attack_worker.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from attack_corpus import Case, corpus
from attack_worker import Watcher


@pytest.fixture(scope="session")
def cases(tmp_path_factory) -> dict[str, Case]:
    """A small good file of every kind; who changes one puts it back."""
    return corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def outcome() -> Iterator[Callable[[str, Path], str]]:
    """`outcome(how, path)`: "read", "defects" or "refused"; anything else with its detail."""
    watcher = Watcher()

    def ask(how: str, path: Path) -> str:
        found, detail = watcher.ask(how, path)
        return f"{found} {detail}".strip()

    yield ask
    watcher.close()
