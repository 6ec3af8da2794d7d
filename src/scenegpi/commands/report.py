"""`scenegpi report`: predictions, a run, an evaluation or a model as one HTML file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from scenegpi.commands.options import Device, File, Photos, Split, Text
from scenegpi.commands.terminal import say
from scenegpi.errors import counted

if TYPE_CHECKING:
    from scenegpi.viz.report.exhibit import Exhibit, Pair
    from scenegpi.viz.report.source import Source

Task = Literal["predcls", "sgcls"]


def report(
    run: Annotated[str, Argument(help="A run of `predict` or `train`, a file of `eval --json`, or a model.")],
    out: Annotated[Path, Option(help="The page to write.")] = Path("report.html"),
    data: Annotated[File, Option(help="Data set to score and show; by default the run's own.")] = None,
    split: Split = None,
    photos: Photos = None,
    model: Annotated[Text, Option(help="Use this model instead of RUN's.")] = None,
    task: Annotated[Task | None, Option(help="By default the task of RUN's figures.")] = None,
    limit: Annotated[int, Option(help="Number of images in the gallery; 0 for none.", min=0, max=200)] = 12,
    device: Device = "cpu",
) -> None:
    """Your photos with their graphs, or a model's figures, curves and gallery: one file that needs no network."""
    from scenegpi.data import DataError
    from scenegpi.errors import MetricError
    from scenegpi.evaluation import trained_on_note
    from scenegpi.metrics.protocol import Protocol
    from scenegpi.viz.report.exhibit import choose
    from scenegpi.viz.report.page import write_report
    from scenegpi.viz.report.source import read_source

    if out.suffix.lower() not in (".html", ".htm"):
        raise DataError(out, "a report is an .html file")
    source = read_source(run)
    if source.kind == "predictions" and data is None:
        _gallery(out, source, photos, limit)
        return
    result, shown = None, []
    found = _exhibit(source, data, split, photos, model, task, device)
    if found is not None:
        exhibit, name = found
        try:
            protocol = Protocol(exhibit.task, data=name)
            result, recall = exhibit.score(protocol, _watched)
            shown = exhibit.show(choose(recall, limit), recall)
        except MetricError as error:
            raise DataError(data or run, str(error)) from None
    warning = ""
    if found is not None and result is not None and found[0].trained_on:
        warning = trained_on_note(found[0].trained_on, result.images)
        say(warning)
    write_report(out, source, result, shown, warning=warning)
    size = out.stat().st_size / 1e6
    say(f"{out}: {counted(len(shown), 'image')}, {size:.1f} MB; open it in a browser")
    if found is None:
        say("no images: give a data set with --data for a gallery and figures per predicate")


def _gallery(out: Path, source: Source, photos: Path | None, limit: int) -> None:
    """A page of predictions without ground truth."""
    from scenegpi.viz.report.images import of_predictions
    from scenegpi.viz.report.page import write_report

    shown, images = of_predictions(source, photos, limit)
    write_report(out, source, None, shown)
    more = f" of {images:,} (--limit N for more)" if len(shown) < images else ""
    say(f"{out}: {counted(len(shown), 'image')}{more}, {out.stat().st_size / 1e6:.1f} MB; open it in a browser")
    missing = sum(each.photo is None for each in shown)
    if missing:
        say(f"{counted(missing, 'photo')} not found; give their folder with --photos")


def _exhibit(
    source: Source,
    data: Path | None,
    split: str | None,
    photos: Path | None,
    model: str | None,
    task: Task | None,
    device: str,
) -> tuple[Exhibit, str] | None:
    """Predictions to score and show, and what the images are called; None where there are none."""
    from scenegpi.data import DataError, open_dataset
    from scenegpi.viz.report.images import of_dataset, of_npz, of_run

    if data is None and source.data is not None and source.data.exists():
        data, split = source.data, split or source.split
    named = model or source.model
    if named is None and source.predictions is not None and source.predictions.suffix.lower() == ".npz":
        return (
            (of_npz(source.predictions, source.task), source.predictions.name) if source.predictions.exists() else None
        )
    if data is None and not (source.kind == "training run" and named is not None and source.config):
        return None
    if named is not None:
        from scenegpi.models import load_model

        network = load_model(named, device)
        if data is None:
            return of_run(source, network)
        name = f"{data}{f' ({split})' if split else ''}"
        return of_dataset(network, open_dataset(data, split, images=photos), task or source.task), name
    if source.predictions is None or data is None:
        raise DataError(source.path, "has no model; give one with --model")
    return _of_file(source, open_dataset(data, split, images=photos)), f"{data}{f' ({split})' if split else ''}"


def _of_file(source: Source, truth: Any) -> Exhibit:
    """Another tool's JSON lines beside the truth."""
    from scenegpi.data import open_dataset
    from scenegpi.evaluation.evaluate import matched
    from scenegpi.viz.report.exhibit import Exhibit

    def pairs(places: Sequence[int] | None) -> Iterator[Pair]:
        found = open_dataset(source.predictions or "", vocabulary=truth.vocabulary, strict=True, trust=True)
        every = matched(found, truth, allow_missing=True)
        if places is None:
            return every
        kept = {k: pair for k, pair in enumerate(every) if k in set(places)}
        return iter([kept[k] for k in places])

    return Exhibit(truth.vocabulary, pairs, truth.photo_path, task=source.task)


def _watched(pairs: Iterable[Pair]) -> Iterable[Pair]:
    from scenegpi.progress import watched

    return watched(pairs, "scoring")
