"""A package whose names are imported when they are first asked for: importing torch takes seconds.

    __getattr__, __dir__, __all__ = lazy(__name__, {"baseline": ("Baseline", "SceneLogits")})

A block `if TYPE_CHECKING:` with the same imports tells type checkers what the names are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, from module -> names that live in it.

    A module is named relative to the package, or absolutely from "scenegpi." on.
    """
    modules = {
        name: module if module.startswith("scenegpi.") else f"{package}.{module}"
        for module, names in homes.items()
        for name in names
    }

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return get, lambda: sorted(modules), sorted(modules)
