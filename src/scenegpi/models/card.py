"""The model card: what a model reads and gives, how it was made, and its figures with what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scenegpi.models.calibration import Calibration, Task

if TYPE_CHECKING:
    from scenegpi.models.build import SceneModel

FIGURES = ("R@20", "R@50", "R@100", "ngR@50", "mR@50")


def model_card(name: str, model: SceneModel, metrics: Mapping[str, Any], training: Mapping[str, Any]) -> str:
    """Markdown for README.md; `metrics` and `training` as given to `save_model`."""
    vocabulary, context = model.vocabulary, model.config.context
    kind = "no context: each box and each pair alone"
    if context is not None:
        kind = f"context by a GPI layer, {context.aggregation} aggregation, {context.steps} steps"
        kind += f", word vectors of width {context.words}" if context.words else ""
    reads = "boxes and labels (or label distributions); no pixels"
    if model.config.vision is not None:
        reads = "a photo and boxes (or labels, or label distributions)"
    if model.config.baseline.prior == "given":
        reads = "boxes, label distributions and pair distributions of another system"
    lines = [
        f"# {name}",
        "",
        f"- reads: {reads}",
        f"- gives: a distribution over {len(vocabulary.objects)} labels for each box and over "
        f'{len(vocabulary.predicates)} predicates and "no relation" for each ordered pair',
        f"- model: {kind}; {model.num_parameters():,} weights",
        f"- vocabulary: {vocabulary.reference}",
    ]
    tasks: dict[Task, str] = {"predcls": "labels given", "sgcls": "labels found"}
    for task, what in tasks.items():
        calibration = model.calibration.of(task)
        if calibration != Calibration():
            lines.append(f"- calibrated, {what}: {calibration}, by images that it was not trained on")
    lines += [f"- {key}: {value}" for key, value in training.items() if isinstance(value, str | int | float)]
    lines += ["", *_figures(metrics), "", "```python", "from scenegpi import load_model, predict", ""]
    lines += ['graph = predict(load_model("PATH"), boxes=[[0, 0, 50, 90], [10, 60, 90, 99]], labels=[0, 1])', "```", ""]
    return "\n".join(lines)


def _figures(metrics: Mapping[str, Any]) -> list[str]:
    rows = []
    for scored, entry in metrics.items():
        if not isinstance(entry, Mapping) or not isinstance(entry.get("figures"), Mapping):
            continue
        shown = ", ".join(
            f"{key} {100 * entry['figures'][key]:.1f}"
            for key in FIGURES
            if isinstance(entry["figures"].get(key), int | float)
        )
        rows.append(f"- {scored} ({entry.get('images', '?')} images): {shown}. {entry.get('protocol', '')}".rstrip())
    return ["## Figures", "", *rows] if rows else ["No figures were measured."]
