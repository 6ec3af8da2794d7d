"""The systems that the paper is compared with, by name: the only place where the product refers to `scenegpi.paper`.

A system's module is imported when its preset, or a model of its kind, is requested. It has `PRESETS`, name ->
`NetworkConfig`, its defaults first.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from scenegpi.errors import OptionError

MODULES = {
    "lu": "lu",
    "lu-visual": "lu",
    "imp": "imp",
    "imp-2017": "imp",
    "pixel2graph-boxes": "pixel2graph",
    "graph-rcnn": "graph_rcnn",
    "motifs": "motifs",
    "motifs-no-context": "motifs",
    "transformer": "transformer",
    "vctree": "vctree",
    "pe-net": "pe_net",
}
"""Preset -> module of `scenegpi.paper.systems`; the module's name is also the kind of its networks."""
KINDS = tuple(dict.fromkeys(MODULES.values()))


def system_module(kind: object) -> Any:
    """The module of a kind of system; OptionError if the name is unknown."""
    if kind not in KINDS:
        raise OptionError(f"kind: {kind!r:.40} is not one of gpi, {', '.join(KINDS)}")
    return import_module(f"scenegpi.paper.systems.{kind}")
