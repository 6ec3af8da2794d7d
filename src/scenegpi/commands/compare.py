"""`scenegpi compare`: two runs or two models, image by image."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from typer import Argument, Option

from scenegpi.commands.eval import paired
from scenegpi.commands.options import File, Photos, Split
from scenegpi.commands.terminal import quiet, say
from scenegpi.errors import DataError, counted
from scenegpi.metrics.protocol import Task


@quiet()
def compare(
    a: Annotated[Path, Argument(help="A run of `predict`, a data set, or a model.")],
    b: Annotated[Path, Argument(help="Another run, data set or model, of the same images.")],
    data: Annotated[File, Option(help="Ground truth, for scores with paired intervals; models need it.")] = None,
    split: Split = None,
    photos: Photos = None,
    task: Annotated[Task, Option(help="What the systems were given: boxes and labels, boxes, or nothing.")] = "sgdet",
    out: Annotated[File, Option(help="Also write a page that shows both side by side (.html).")] = None,
    limit: Annotated[int, Option(help="Number of images on the page.", min=0, max=200)] = 12,
) -> None:
    """Show what changed between two runs or models; with --data, how much better the second is, with intervals."""
    from scenegpi.evaluation.changes import changes, is_model, write_answers

    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise DataError(out, "expected an .html file")
    paths = [a, b]
    with TemporaryDirectory() as folder:
        for k, path in enumerate((a, b)):
            if is_model(path):
                if data is None:
                    raise DataError(path, "a model needs images: give a data set with --data")
                paths[k] = Path(folder) / f"{k}.jsonl"
                write_answers(path, data, split, photos, paths[k])
        found = changes(paths[0], paths[1], limit)
        names = _names(a, b)
        first, second = names
        both = (
            (counted(found.images, "image"), *found.alone),
            (counted(found.same, "relation"), found.only_a.total(), found.only_b.total()),
        )
        lines = [
            f"{shared} in both; {here:,} only in {first}, {there:,} only in {second}" for shared, here, there in both
        ]
        for name, only in ((first, found.only_a), (second, found.only_b)):
            words = ", ".join(f"{word} {count:,}" for word, count in only.most_common(8))
            lines.append(f"only in {name}, by predicate: {words or 'none'}")
        if data is not None:
            lines += figures((a, b), names, data, split, photos, task)
    for line in lines:
        say(line)
    if out is not None:
        from scenegpi.viz.notebook import write_side_by_side

        write_side_by_side(out, names, lines, found.most)
        say(f"{out}: {counted(len(found.most), 'image')} side by side, those that changed most")


def figures(
    paths: tuple[Path, Path], names: tuple[str, str], data: Path, split: str | None, photos: Path | None, task: Task
) -> list[str]:
    """How much better the second is than the first, by paired bootstrap."""
    from scenegpi.evaluation import evaluate_file, evaluate_model
    from scenegpi.evaluation.changes import is_model, predictions_path
    from scenegpi.metrics.protocol import Protocol

    protocol = Protocol(task)
    results = [
        evaluate_model(str(path), protocol, data=data, split=split, photos=photos)
        if is_model(path)
        else evaluate_file(predictions_path(path), protocol, data=data, split=split)
        for path in paths
    ]
    rows = paired(results[0], results[1], data)
    said = f"{names[1]} against {names[0]}, {protocol}, {counted(results[0].images, 'image')}:"
    notes = [note for result in results for note in result.notes if note.startswith("SCORED ON")]
    return [said, *(f"  {row}" for row in rows.values()), *notes]


def _names(a: Path, b: Path) -> tuple[str, str]:
    """Names for two runs: those of their folders, or their paths if these names are the same."""
    names = tuple(path.parent.name if path.name == "predictions.jsonl" else path.name for path in (a, b))
    return (names[0], names[1]) if names[0] != names[1] else (str(a), str(b))
