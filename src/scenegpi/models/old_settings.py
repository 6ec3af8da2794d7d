"""Settings of a model as earlier versions wrote them.

Each kind of network had a field of its own, one of nine; a box could be described by a crop of the photo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scenegpi.errors import OptionError
from scenegpi.models.prior import SMOOTHING
from scenegpi.models.systems import KINDS

_FEATURES = {"nodes": "roi", "square": True, "roi_layers": ["early", "middle", "last"]}
"""What a model that describes boxes as all do now said of it; what it said of crops meant nothing."""
_CROPS = ("crop_size", "margin", "crop_layers")


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
    vision = kept.get("vision")
    if isinstance(vision, Mapping) and isinstance(vision.get("features"), Mapping):
        kept["vision"] = {**vision, "features": _by_roi(vision["features"])}
    return kept


def _by_roi(features: Mapping[str, Any]) -> dict[str, Any]:
    for name, now in _FEATURES.items():
        if name in features and features[name] != now:
            raise OptionError(f"model.vision.features.{name}: {features[name]!r:.40}, now always {now!r}")
    return {key: value for key, value in features.items() if key not in (*_FEATURES, *_CROPS)}
