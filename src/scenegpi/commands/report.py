"""`scenegpi report`: predictions, a run, an evaluation or a model as one HTML file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from scenegpi.commands.options import Device, File, Photos, Split, Text
from scenegpi.commands.terminal import say
from scenegpi.errors import DataError, MetricError, counted, naming
from scenegpi.progress import watched

if TYPE_CHECKING:
    from scenegpi.viz.report.source import Source

Task = Literal["predcls", "sgcls"]


def report(
    run: Annotated[str, Argument(help="A run of `predict` or `train`, a file of `eval --json`, or a model.")],
    out: Annotated[Path, Option(help="The page to write.")] = Path("report.html"),
    data: Annotated[File, Option(help="Data set to score and show; by default the run's own.")] = None,
    split: Split = None,
    photos: Photos = None,
    model: Annotated[Text, Option(help="Use this model instead of RUN's.")] = None,
    task: Annotated[Task | None, Option(help="Labels given or predicted too; by default as in RUN's figures.")] = None,
    limit: Annotated[int, Option(help="Number of images in the gallery; 0 for none.", min=0, max=200)] = 12,
    device: Device = "cpu",
) -> None:
    """Your photos with their graphs, or a model's figures, curves and gallery: one file that needs no network."""
    from scenegpi.evaluation import trained_on_note
    from scenegpi.metrics.protocol import Protocol
    from scenegpi.viz.report.exhibit import choose, exhibit_of
    from scenegpi.viz.report.page import write_report
    from scenegpi.viz.report.source import read_source

    if out.suffix.lower() not in (".html", ".htm"):
        raise DataError(out, "expected an .html file")
    source = read_source(run)
    if source.kind == "predictions" and data is None:
        _gallery(out, source, photos, limit)
        return
    result, shown = None, []
    found = exhibit_of(source, data, split, photos, model, task, device)
    if found is not None:
        exhibit, name = found
        with naming(data or run, MetricError):
            protocol = Protocol(exhibit.task, data=name)
            result, recall = exhibit.score(protocol, partial(watched, what="scoring"))
            shown = exhibit.show(choose(recall, limit), recall)
    warning = ""
    if found is not None and result is not None and found[0].trained_on:
        warning = trained_on_note(found[0].trained_on, result.images)
        say(warning)
    write_report(out, source, result, shown, warning=warning)
    say(f"{out}: {counted(len(shown), 'image')}, {out.stat().st_size / 1e6:.1f} MB; open it in a browser")
    if found is None:
        say("no images: give a data set with --data for a gallery and figures per predicate")


def _gallery(out: Path, source: Source, photos: Path | None, limit: int) -> None:
    """A page of predictions without ground truth."""
    from scenegpi.viz.report.exhibit import of_predictions
    from scenegpi.viz.report.page import write_report

    shown, images, changed = of_predictions(source, photos, limit)
    write_report(out, source, None, shown)
    more = f" of {images:,} (--limit N for more)" if len(shown) < images else ""
    say(f"{out}: {counted(len(shown), 'image')}{more}, {out.stat().st_size / 1e6:.1f} MB; open it in a browser")
    if changed:
        say(f"{counted(changed, 'photo')} not shown, as changed since: predict again")
    missing = sum(each.photo is None for each in shown) - changed
    if missing:
        say(f"{counted(missing, 'photo')} not found; give their folder with --photos")
