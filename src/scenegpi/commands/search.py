"""`scenegpi index` and `scenegpi search`: many graphs in a store, and pictures found by what is in them."""

from __future__ import annotations

from dataclasses import asdict
from os.path import abspath, commonpath, isfile, samefile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from scenegpi.commands.options import File, Format, Photos, PrintJson, Split, Text
from scenegpi.commands.terminal import make_console, quiet, say, say_json
from scenegpi.errors import DataError, counted, printable
from scenegpi.files import not_an_input, write_json
from scenegpi.progress import watched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from scenegpi.data import Dataset
    from scenegpi.graph import SceneGraph
    from scenegpi.store import Answer, Store
    from scenegpi.store.change import Indexed


DATA = "A folder of `scenegpi predict`, or a data set of any known format."


@quiet()
def index(
    data: Annotated[Path, Argument(help=DATA, readable=False)],
    out: Annotated[Path, Option(help="The store to create or to add to.")],
    photos: Photos = None,
    format: Format = None,
    split: Split = None,
) -> None:
    """Put graphs into a store to search. Images of the same id (or file) are replaced. Adds all images or none."""
    from scenegpi.bulk.run_folder import LINES
    from scenegpi.data import open_dataset
    from scenegpi.store import Store
    from scenegpi.store.folder import Manifest, is_store
    from scenegpi.store.runs import is_run

    path = data / LINES if format is None and (data / LINES).is_file() else data
    dataset = open_dataset(path, split, format=format, images=photos)
    graphs: Iterable[Indexed] = dataset
    folders = dataset.images.folders
    if is_run(dataset):
        known = Manifest.read(out).photos if is_store(out) else ()
        graphs, folders = _with_photos(dataset, photos, known)
    store = Store(out)
    added, replaced = store.add(watched(graphs, "images", len(dataset)), folders)
    again = f", {replaced:,} of them replaced" if replaced else ""
    say(f"{out}: {counted(added, 'image')} indexed{again}; {counted(len(store), 'image')} in all")
    if dataset.report.skipped:
        say(f"{counted(dataset.report.skipped, 'image')} left out; the first: {dataset.report.first_error}", error=True)


def _with_photos(run: Dataset, given: Path | None, known: Iterable[str]) -> tuple[Iterable[Indexed], tuple[Path, ...]]:
    """The graphs of a run with the digests of their photos, their files named from folders in which each is found, and
    not another; those folders.

    These are the store's `known` ones, so that a photo keeps its name, then `given` or the one that holds all photos
    (not the run's, whose pictures are drawings), and those above it.
    """
    from scenegpi.bulk.digests import photo_part
    from scenegpi.data.images import ImageFolders

    rows: Any = run.source
    lines = [rows.fields(i, "photo", "digest", "source") for i in run.rows.tolist()]
    paths = [Path(abspath(photo)) if isinstance(photo, str) else None for photo, *_ in lines]
    if given is None:
        found = [path if path is not None and isfile(path) else None for path in paths]
    else:
        found = [None if path is None else ImageFolders([abspath(given)]).find_moved(path) for path in paths]
    root = Path(abspath(given or commonpath([path.parent for path in found if path is not None] or [run.path.parent])))
    lost = found.count(None)
    if lost:
        say(f"{counted(lost, 'photo')} of this run not found; name their folder with --photos", error=True)
    folders = list(dict.fromkeys((*map(Path, known), root, *root.parents)))
    places = [None if path is None else _place(path, folders) for path in found]

    def named() -> Iterator[Indexed]:
        for graph, path, place, (_, digest, source) in zip(run, found, places, lines, strict=True):
            if path is not None and place is not None:
                graph = graph.replace(file=path.relative_to(place).as_posix())
            elif graph.key is None:  # a frame of a video has no name, but it is the same one next time
                graph = graph.replace(image_id=source)
            yield graph, photo_part(digest)

    return named(), tuple(each for each in folders if each in places or (given is not None and each == root))


def _place(path: Path, folders: Sequence[Path]) -> Path | None:
    """The first folder from which the name of a photo leads to it, and not to another photo in an earlier folder."""
    from scenegpi.data.images import ImageFolders

    every = ImageFolders(folders)
    for folder in folders:
        if path.is_relative_to(folder):
            first = every.find(path.relative_to(folder).as_posix())
            if first is not None and samefile(first, path):
                return folder
    return None


def search(
    store: Annotated[Path, Argument(help="A store made by `scenegpi index`.")],
    query: Annotated[Text, Argument(help='For example "person riding horse and without hat".')] = None,
    graph: Annotated[File, Option(help="Rank images by a whole graph: the first of a JSON lines file.")] = None,
    duplicates: Annotated[bool, Option(help="List duplicate images instead of searching.")] = False,
    limit: Annotated[int, Option(help="Show at most this many images.", min=1, max=10_000)] = 20,
    out: Annotated[File, Option(help="Also write a contact sheet (.png, .svg) or .json.")] = None,
    photos: Photos = None,
    json: PrintJson = False,
) -> None:
    """Find pictures by their relations: triples joined by "and", ?variables, * for anything, counts, "without"."""
    from scenegpi.store import Answer, Query, Store
    from scenegpi.store.folder import MANIFEST

    if out is not None:
        not_an_input(out, graph, store / MANIFEST)
    if not duplicates and (query is None) == (graph is None):
        raise DataError("search", 'give a query, for example "person riding horse", or a graph with --graph')
    place = Store(store, [photos] if photos else [])
    if duplicates:
        _say_duplicates(place, json)
        return
    with place.snapshot():
        if graph is not None:
            from scenegpi.data import open_dataset

            hits = place.similar(open_dataset(graph)[0], limit)
            answer = Answer(Query((), ()), tuple(hits), len(place))
        else:
            answer = place.search(str(query), limit)
        graphs = place.graphs(hit.image for hit in answer.hits)
        changed = place.changed({hit.image: place.photo(hit) for hit in answer.hits})
        if out is not None and out.suffix.lower() != ".json":
            from scenegpi.store.contact_sheet import draw_hits

            draw_hits(place, answer, out)
    if changed:
        names = ", ".join(printable(hit.file or hit.key) for hit in answer.hits if hit.image in changed)
        say(f"shown without matches, as changed since `index`: {names}; predict and index again", error=True)
    if out is not None and out.suffix.lower() == ".json":
        write_json(out, _as_json(graphs, answer, changed))
    if json:
        say_json(_as_json(graphs, answer, changed))
    else:
        _print(graphs, answer, changed, ranked=graph is not None)
        if out is not None:
            say(f"{out}: written")


def _say_duplicates(store: Store, json: bool) -> None:
    from scenegpi.store.duplicates import duplicates

    groups = [[hit.file or hit.key for hit in group] for group in duplicates(store)]
    if json:
        say_json({"duplicates": groups})
        return
    extra = sum(map(len, groups)) - len(groups)
    say(f"{counted(len(groups), 'picture')} stored more than once, {counted(extra, 'extra image')}")
    for names in groups:
        say(f"  {', '.join(names)}")


def _as_json(graphs: dict[int, SceneGraph], answer: Answer, changed: set[int]) -> dict[str, Any]:
    """An answer in plain values, with the labels of the objects of each match; an image whose photo has `changed` has
    none."""
    hits = [asdict(hit) | {"changed": hit.image in changed} for hit in answer.hits]
    for hit in hits:
        if hit["changed"]:
            hit["matches"] = []
        names = graphs[hit["image"]].names
        for match in hit["matches"]:
            match["labels"] = [None if i is None else names[i] for i in match["objects"]]
    return {"query": str(answer.query), "images": answer.images, "notes": answer.notes, "hits": hits}


def _print(graphs: dict[int, SceneGraph], answer: Answer, changed: set[int], ranked: bool) -> None:
    from rich.table import Column, Table
    from rich.text import Text

    from scenegpi.viz.text import numbered

    for note in answer.notes:
        say(f"note: {note}", error=True)
    if ranked:
        say(f"{counted(answer.images, 'image')}, ranked by the graph")
    else:
        say(f"{answer.query}: {counted(answer.images, 'image')}")
    if not answer.hits:
        return
    table = Table("image", *(Column(name, justify="right") for name in ("score", "matches")), "best match")
    for hit in answer.hits:
        names = numbered(graphs[hit.image].names)  # the numbers of the pictures
        matches = () if hit.image in changed else hit.matches
        shown = ", ".join(names[i] for i in (matches[0].objects if matches else ()) if i is not None)
        name = f"{'changed: ' if hit.image in changed else ''}{hit.file or hit.key}"
        row = (name, f"{hit.score:.3f}", f"{hit.count}" if matches else "", shown)
        table.add_row(*(Text(printable(cell)) for cell in row))
    make_console().print(table)
