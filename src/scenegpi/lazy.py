"""A package whose names are imported when they are first asked for: importing torch takes seconds.

    if TYPE_CHECKING:
        from scenegpi.models.baseline import Baseline

    __getattr__, __dir__, __all__ = lazy(__name__)

The imports for type checkers are also those made later, so each name is written once.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, from the block `if TYPE_CHECKING:` in its source."""
    source = sys.modules[package].__spec__.loader.get_source(package)  # type: ignore[union-attr]
    blocks = (block for block in ast.parse(source).body if isinstance(block, ast.If))
    imports = (each for block in blocks for each in block.body if isinstance(each, ast.ImportFrom))
    modules = {alias.name: str(each.module) for each in imports for alias in each.names}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return get, lambda: sorted(modules), sorted(modules)
