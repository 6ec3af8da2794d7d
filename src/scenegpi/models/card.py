"""The model card: what a model reads and gives, how it was made, and its figures with what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scenegpi.models.calibration import Calibration, Task

if TYPE_CHECKING:
    from scenegpi.models.build import SceneModel

FIGURES = ("R@20", "R@50", "R@100", "ngR@50", "mR@50")
_USE = """```python
from scenegpi import Predictor

predictor = Predictor("PATH")
graph = predictor({photo}boxes=[[0, 0, 50, 90], [10, 60, 90, 99]]{labels})
```
"""


def model_card(name: str, model: SceneModel, metrics: Mapping[str, Any], training: Mapping[str, Any]) -> str:
    """Markdown for README.md; `metrics` and `training` as given to `save_model`."""
    vocabulary = model.vocabulary
    labels, predicates = len(vocabulary.objects), len(vocabulary.predicates)
    lines = [
        f"# {name}",
        "",
        f"- reads: {_reads(model)}",
        f"- gives: a distribution over {labels} labels for each box, and over {predicates} predicates and "
        f'"no relation" for each ordered pair of boxes',
        f"- model: {_kind(model)}; {model.num_parameters():,} weights",
        f"- vocabulary: {vocabulary.reference}",
    ]
    tasks: dict[Task, str] = {"predcls": "labels given", "sgcls": "labels predicted"}
    for task, what in tasks.items():
        calibration = model.calibration.of(task)
        if calibration != Calibration():
            lines.append(f"- calibrated, {what}: {calibration}, on images that it was not trained on")
    lines += [f"- {key}: {value}" for key, value in training.items() if isinstance(value, str | int | float)]
    words = f", labels={list((vocabulary.objects * 2)[:2])}"
    given = {"photo": "", "labels": words} if model.config.vision is None else {"photo": '"photo.jpg", ', "labels": ""}
    use = _USE.format(**given)
    return "\n".join([*lines, "", *_figures(metrics), "", use])


def _reads(model: SceneModel) -> str:
    if model.config.baseline.prior == "given":
        return "boxes, label distributions and pair distributions of another system"
    if model.config.vision is not None:
        return "a photo and boxes; or boxes with labels or label distributions"
    return "boxes with labels or label distributions; it does not use the photo"


def _kind(model: SceneModel) -> str:
    context = model.config.context
    if model.config.system is not None:
        below = ", on a frozen baseline" if model.config.on_baseline else ""
        return f"{model.config.system.replace('_', '-')}, a system that GPI is compared with{below}"
    if context is None:
        return "no context: each box and each pair by itself"
    steps = "1 step" if context.steps == 1 else f"{context.steps} steps"
    words = f", word vectors of width {context.words}" if context.words else ""
    return f"context by a GPI layer, {context.aggregation} aggregation, {steps}{words}"


def _figures(metrics: Mapping[str, Any]) -> list[str]:
    rows = []
    for scored, entry in metrics.items():
        if not isinstance(entry, Mapping) or not isinstance(entry.get("figures"), Mapping):
            continue
        figures = entry["figures"]
        known = [key for key in FIGURES if isinstance(figures.get(key), int | float)]
        shown = ", ".join(f"{key} {100 * figures[key]:.1f}" for key in known)
        rows.append(f"- {scored} ({entry.get('images', '?')} images): {shown}. {entry.get('protocol', '')}".rstrip())
    return ["## Figures", "", *rows] if rows else ["No figures were measured."]
