"""The page: sections in order, one style sheet, one script, no network.

Its content security policy allows only this style sheet and this script, each by its hash, and pictures inside the
file: a name in a data set can neither run as code nor send a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from scenegpi import __version__
from scenegpi.errors import counted
from scenegpi.files import whole_file
from scenegpi.metrics.protocol import TASK_NAMES, Protocol
from scenegpi.metrics.result import Result
from scenegpi.viz.report.exhibit import Shown, middle
from scenegpi.viz.report.gallery import SIGNS, scene
from scenegpi.viz.report.markup import Html, data_block, h, join, source_hash
from scenegpi.viz.report.sections import figures_section, predicate_section, published_section, training_section
from scenegpi.viz.report.source import Source

KEYS = "By keyboard: Tab moves between parts, arrows within one, Enter selects, Escape deselects."
LEGEND = {
    "right": "predicted, and in the ground truth (solid)",
    "wrong": "predicted, not in the ground truth (dashed)",
    "missed": "in the ground truth, missed (dotted)",
}


def write_report(target: Path, source: Source, result: Result | None, *more: Any, **named: Any) -> Path:
    """Writes the page of `render` to an .html file, whole or not at all."""
    text = render(source, result, *more, **named)
    with whole_file(target) as part:
        part.write_text(text, encoding="utf-8")
    return target


def render(
    source: Source, result: Result | None, shown: Sequence[Shown] = (), notes: Sequence[str] = (), warning: str = ""
) -> str:
    """The page as text.

    Args:
        result: the figures to show first; by default the first of the source.
        shown: images of the gallery.
        notes: what a reader must know about how the report was made.
        warning: what a reader must know before any figure, in large letters.
    """
    results = dict(source.results)
    if result is not None:
        results = {result.protocol.data or source.name: result} | {
            name: other for name, other in results.items() if other is not result
        }
    first = result or next(iter(results.values()), None)
    data: dict[str, Any] = {"charts": {}, "scenes": []}
    sections: dict[str, Html | None] = {}
    if first is not None:
        sections = {"figures": figures_section(first, results), "published": published_section(source, first)}
    if source.log:
        sections["training"] = training_section(source, data["charts"])
    if first is not None and first.per_predicate:
        sections["predicates"] = predicate_section(first)
    if shown:
        sections["gallery"] = _gallery(shown, Protocol() if first is None else first.protocol, data["scenes"])
    titles = {name: name.title() for name, content in sections.items() if content}
    body = [h("section", h("h2", title), sections[name], id=name, aria_label=title) for name, title in titles.items()]
    style, script = asset("base.css") + asset("report.css"), asset("gallery.js") + asset("report.js")
    template = Template(asset("report.html"))
    policy = (
        f"default-src 'none'; img-src data:; style-src {source_hash(style)}; script-src {source_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    return template.substitute(
        policy=policy,
        title=join(f"{source.name}: scenegpi report"),
        style=style,
        script=script,
        nav=join([h("a", title, href=f"#{name}") for name, title in titles.items()]),
        kind=join(source.kind),
        name=join(source.name),
        facts=_facts(source, first, shown),
        notes=join(
            h("p", warning, class_="warning", role="alert") if warning else None,
            [h("p", note, class_="note") for note in notes],
        ),
        body=join(*body),
        data=data_block("data", data),
        version=join(__version__),
    )


def asset(name: str) -> str:
    """A style sheet, a script or a template that ships; the studio shares base.css and gallery.js."""
    return files(__package__).joinpath(name).read_text("utf-8")


def _facts(source: Source, first: Result | None, shown: Sequence[Shown]) -> Html:
    facts: list[str] = []
    if first is not None:
        facts.append(TASK_NAMES[first.protocol.task])
        if first.images:
            facts.append(counted(first.images, "image"))
        if first.counts.get("relations"):
            facts.append(f"{first.counts['relations']:,} relations")
    elif shown:
        facts.append(counted(len(shown), "image"))
    if preset := source.config.get("preset"):
        facts.append(f"preset {preset}")
    if source.log:
        facts.append(counted(len(source.log), "epoch"))
    if source.model and source.kind == "evaluation":
        facts.append(f"model {Path(source.model).name}")
    return join([h("li", fact) for fact in facts])


def _gallery(shown: Sequence[Shown], protocol: Protocol, data: list[Any]) -> Html:
    articles, thumbs = [], []
    for number, each in enumerate(shown):
        article, thumb, numbers = scene(each, number, protocol)
        articles.append(article)
        thumbs.append(thumb)
        data.append(numbers)
    strip, keys = h("div", *thumbs, class_="strip", role="tablist", aria_label="Images"), h("span", KEYS, class_="keys")
    if all(each.truth is None for each in shown):
        how = "Point at a box, an object or a relation and its counterparts light up. "
        score = "A score is P(subject) P(object) P(predicate)."
        return join(h("p", how, score, " ", keys), strip, *articles)
    rule = (
        f"The images with the lowest and the highest R@{middle(protocol)}, and some near the median; of equal ones "
        "those with more relations. Point at a box, an object or a triplet and its counterparts light up."
    )
    kinds = ["all", *(why for why in ("worst", "typical", "best") if any(each.why == why for each in shown))]
    choices = [
        h("button", why, type="button", data_why=why, aria_pressed="true" if why == "all" else "false") for why in kinds
    ]
    legend = [h("li", h("span", SIGNS[kind][0], class_=f"sign {kind}"), f" {said}") for kind, said in LEGEND.items()]
    return join(
        h("p", rule, " ", keys),
        h("div", choices, class_="choices", role="group", aria_label="Which images"),
        strip,
        h("ul", legend, class_="legend"),
        *articles,
    )
