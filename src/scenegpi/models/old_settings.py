"""Settings of a model as earlier versions wrote them: each kind of network had a field of its own, one of nine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scenegpi.errors import OptionError
from scenegpi.models.prior import SMOOTHING
from scenegpi.models.systems import KINDS


def one_network(data: Any) -> Any:
    """The settings as they are now, with one `network`; OptionError where they cannot be kept."""
    if not isinstance(data, Mapping):
        return data
    old = {name: data[name] for name in ("context", *KINDS) if data.get(name) is not None}
    if len(old) > 1:
        raise OptionError(f"model: {' and '.join(old)}: a model has one of them")
    kept = {key: value for key, value in data.items() if key not in ("context", *KINDS)}
    for name, value in old.items():
        kind = {"kind": "gpi" if name == "context" else name}
        kept["network"] = kind | dict(value) if isinstance(value, Mapping) else value
    baseline = kept.get("baseline")
    if isinstance(baseline, Mapping) and "smoothing" in baseline:
        if baseline["smoothing"] != SMOOTHING:
            raise OptionError(f"model.baseline.smoothing: {baseline['smoothing']!r:.20}, now always {SMOOTHING:g}")
        kept["baseline"] = {key: value for key, value in baseline.items() if key != "smoothing"}
    return kept
