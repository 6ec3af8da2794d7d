"""The names behind the numbers: object classes and predicates.

Everywhere in this project a label is a 0-based index into `Vocabulary.objects`, and a predicate a 0-based index into
`Vocabulary.predicates`. A distribution over predicates has one more column: column 0 is "no relation", column
p + 1 is predicate p.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

SPOKEN = MappingProxyType({"short": "shorts", "pant": "pants", "jean": "jeans", "ski": "skis", "men": "people"})
"""Visual Genome's labels that differ from the everyday name."""


def spoken(name: str) -> str:
    """A label as a person reads it: in pictures, in the terminal, on pages. Files keep the data's own name."""
    return SPOKEN.get(name, name)


@dataclass(frozen=True, init=False, repr=False)
class Vocabulary:
    """Object and predicate names, in order. Immutable, hashable, compared by content.

    Args:
        objects: the object class names; label i is `objects[i]`.
        predicates: the predicate names; predicate p is `predicates[p]`. May be empty (boxes from a detector).
        name: a short name ("vg150"); not part of equality.
    """

    objects: tuple[str, ...]
    predicates: tuple[str, ...]
    name: str = field(compare=False)

    def __init__(self, objects: Sequence[str], predicates: Sequence[str] = (), name: str = "") -> None:
        object.__setattr__(self, "objects", _names(objects, "objects"))
        object.__setattr__(self, "predicates", _names(predicates, "predicates"))
        if not well_formed(str(name)):
            raise ValueError(f"vocabulary.name: {str(name)!r:.60} can't be written as UTF-8")
        object.__setattr__(self, "name", str(name))

    @cached_property
    def object_index(self) -> Mapping[str, int]:
        """Name -> label."""
        return MappingProxyType({name: i for i, name in enumerate(self.objects)})

    @cached_property
    def predicate_index(self) -> Mapping[str, int]:
        """Name -> predicate."""
        return MappingProxyType({name: i for i, name in enumerate(self.predicates)})

    @cached_property
    def digest(self) -> str:
        """Twelve hex digits that identify this content."""
        text = json.dumps([self.objects, self.predicates], ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def reference(self) -> str:
        """How a file refers to this vocabulary: its name, if not empty, and its digest."""
        return f"{self.name}-{self.digest}" if self.name else self.digest

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, read back by `from_dict`."""
        return {"name": self.name, "objects": list(self.objects), "predicates": list(self.predicates)}

    @classmethod
    def from_dict(cls, data: Any) -> Vocabulary:
        """Inverse of `to_dict`; ValueError with the field's name on anything else."""
        if not isinstance(data, dict):
            raise ValueError(f"vocabulary: expected an object, found {type(data).__name__}")
        name = data.get("name", "")
        if not isinstance(name, str):
            raise ValueError("vocabulary.name: expected a string")
        return cls(data.get("objects", ()), data.get("predicates", ()), name)

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        return f"Vocabulary({name}{len(self.objects)} objects, {len(self.predicates)} predicates)"

    def __reduce__(self) -> tuple[Any, ...]:
        return Vocabulary, (self.objects, self.predicates, self.name)


def _names(values: Iterable[str], field: str) -> tuple[str, ...]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"vocabulary.{field}: expected a list of names")
    names = tuple(values)
    seen: set[str] = set()
    for i, name in enumerate(names):
        if not isinstance(name, str) or not name or not well_formed(name):
            raise ValueError(f"vocabulary.{field}[{i}]: expected a non-empty string, found {name!r:.60}")
        if name in seen:
            raise ValueError(f"vocabulary.{field}: {name!r:.60} is duplicated")
        seen.add(name)
    return names


def well_formed(text: str) -> bool:
    """Whether a string can be written as UTF-8 (JSON can hold half a surrogate pair, which can't)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
