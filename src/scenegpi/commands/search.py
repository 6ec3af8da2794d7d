"""`scenegpi index` and `scenegpi search`: many graphs in a store, and pictures found by what is in them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scenegpi.commands.quiet import quiet
from scenegpi.commands.terminal import make_console, say, say_json
from scenegpi.errors import counted

if TYPE_CHECKING:
    from scenegpi.store import Answer, Hit, Store

Photos = Annotated[Path | None, typer.Option(help="Folder of the photos.", show_default=False)]


@quiet()
def index(
    data: Annotated[
        Path, typer.Argument(help="A folder of `scenegpi predict`, or a data set of any known format.", readable=False)
    ],
    out: Annotated[Path, typer.Option(help="The store: made, or added to.")],
    photos: Photos = None,
    format: Annotated[str | None, typer.Option(help="The format, if it is not clear.", show_default=False)] = None,
    split: Annotated[str | None, typer.Option(help="Only train, val or test.", show_default=False)] = None,
) -> None:
    """Put graphs into a store to search. Images of the same id (or file) are replaced; all or nothing is changed."""
    from scenegpi.commands.predict_output import LINES
    from scenegpi.data import open_dataset
    from scenegpi.progress import watched
    from scenegpi.store import Store

    path = data / LINES if format is None and (data / LINES).is_file() else data
    dataset = open_dataset(path, split, format=format, images=photos)
    store = Store(out)
    added, replaced = store.add(watched(dataset, "images", len(dataset)), dataset.images.folders)
    again = f", {replaced:,} of them replaced" if replaced else ""
    say(f"{out}: {counted(added, 'image')} indexed{again}; {counted(len(store), 'image')} in all")
    if dataset.report.skipped:
        say(f"{counted(dataset.report.skipped, 'image')} left out; the first: {dataset.report.first_error}", error=True)


def search(
    store: Annotated[Path, typer.Argument(help="A store made by `scenegpi index`.")],
    query: Annotated[
        str | None, typer.Argument(help='For example "person riding horse and without hat".', show_default=False)
    ] = None,
    graph: Annotated[
        Path | None,
        typer.Option(help="Rank images by a whole graph: a JSON lines file, its first.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option(help="Show at most this many images.", min=1, max=10_000)] = 20,
    out: Annotated[
        Path | None, typer.Option(help="Also write a contact sheet (.png, .svg) or .json.", show_default=False)
    ] = None,
    photos: Photos = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Find pictures by their relations: triples joined by "and", ?variables, * for anything, counts, "without"."""
    from scenegpi.errors import DataError
    from scenegpi.files import write_json
    from scenegpi.store import Answer, Query, Store

    if (query is None) == (graph is None):
        raise DataError("search", 'give a query, for example "person riding horse", or a graph with --graph')
    place = Store(store, [photos] if photos else [])
    if graph is not None:
        from scenegpi.data import open_dataset

        hits = place.similar(open_dataset(graph)[0], limit)
        answer = Answer(Query((), ()), tuple(hits), len(place))
    else:
        answer = place.search(str(query), limit)
    if out is not None and out.suffix.lower() == ".json":
        write_json(out, _as_json(place, answer))
    elif out is not None:
        from scenegpi.store.contact_sheet import draw_hits

        draw_hits(place, answer, out)
    if json:
        say_json(_as_json(place, answer))
    else:
        _print(place, answer, ranked=graph is not None)
        if out is not None:
            say(f"{out}: written")


def _as_json(store: Store, answer: Answer) -> dict[str, Any]:
    """An answer in plain values, with the labels of the objects of each match."""
    graphs = store.graphs(hit.image for hit in answer.hits)
    return {
        "query": str(answer.query),
        "images": answer.images,
        "notes": list(answer.notes),
        "hits": [_hit_json(hit, graphs[hit.image].names) for hit in answer.hits],
    }


def _hit_json(hit: Hit, names: list[str]) -> dict[str, Any]:
    return {
        "image": hit.image,
        "key": hit.key,
        "file": hit.file,
        "score": hit.score,
        "count": hit.count,
        "matches": [
            {
                "objects": list(match.objects),
                "labels": [None if i is None else names[i] for i in match.objects],
                "score": match.score,
            }
            for match in hit.matches
        ],
    }


def _print(store: Store, answer: Answer, ranked: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from scenegpi.errors import printable

    for note in answer.notes:
        say(f"note: {note}", error=True)
    if ranked:
        say(f"{counted(answer.images, 'image')}, ranked by the graph")
    else:
        say(f"{answer.query}: {counted(answer.images, 'image')}")
    if not answer.hits:
        return
    table = Table()
    for name, side in (("image", "left"), ("score", "right"), ("matches", "right"), ("best match", "left")):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    graphs = store.graphs(hit.image for hit in answer.hits)
    for hit in answer.hits:
        names = graphs[hit.image].names
        objects = hit.matches[0].objects if hit.matches else ()
        shown = ", ".join(f"{names[i]} {i}" for i in objects if i is not None)
        row = (hit.file or hit.key, f"{hit.score:.3f}", f"{hit.count}" if hit.matches else "", shown)
        table.add_row(*(Text(printable(cell)) for cell in row))
    make_console().print(table)
