"""`scenegpi words`: learn word vectors, show neighbours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from scenegpi.commands.terminal import make_console, say
from scenegpi.errors import DataError, printable
from scenegpi.progress import progress

if TYPE_CHECKING:
    from scenegpi.words.vectors import WordVectors

SHOWN = ("dog", "wearing", "street")

app = typer.Typer(help="Word vectors: learn them from captions, show neighbours.", no_args_is_help=True)


@app.command()
def train(
    captions: Annotated[Path, Argument(help="Text file, one caption per line.")],
    out: Annotated[Path, Option(help="File to write (safetensors).")],
    dim: Annotated[int, Option(min=1, max=4096, help="Width of the vectors.")] = 300,
    window: Annotated[int, Option(min=1, max=1000, help="Maximum distance between the words of a pair.")] = 10,
    min_count: Annotated[int, Option(min=1, help="Leave out words that occur less often.")] = 2,
    epochs: Annotated[int, Option(min=1, help="Number of passes over the counts.")] = 30,
    zeros: Annotated[float, Option(min=0, help="Pairs that never occur, sampled for each pair that does.")] = 1.0,
    sum_vectors: Annotated[bool, Option("--sum", help="GloVe's w + w~ as vectors, instead of w.")] = False,
    seed: Annotated[int, Option(help="Random seed.")] = 0,
    half: Annotated[bool, Option("--half", help="Write half precision (float16).")] = False,
    force: Annotated[bool, Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Learn GloVe vectors from captions."""
    from scenegpi.paper.glove import GloveOptions, count_cooccurrences, train_glove
    from scenegpi.words.vectors import WordVectors

    if out.exists() and not force:
        raise DataError(out, "exists already (use --force to replace it)")
    counts = count_cooccurrences(captions, window, min_count)
    say(f"{captions}: {len(counts.words):,} words, {len(counts.rows):,} pairs of words that occur together")
    options = GloveOptions(dim=dim, epochs=epochs, zeros=zeros, vectors="sum" if sum_vectors else "word", seed=seed)
    losses: list[float] = []
    with progress("epochs", epochs) as advance:

        def after(epoch: int, loss: float) -> None:
            losses.append(loss)
            advance()

        vectors = train_glove(counts, options, after)
    say(f"loss {losses[0]:.4f} in the first epoch, {losses[-1]:.4f} in the last")
    words = WordVectors(counts.words, vectors, f"GloVe, {dim} dimensions, from {captions.name}")
    words.save(out, half)
    _print_neighbours(words, [word for word in SHOWN if word in words])
    say(f"wrote {out}: {words!r}")


@app.command()
def neighbours(
    file: Annotated[str, Argument(help="Vectors: a file of `words train`, or a GloVe text file.")],
    words: Annotated[list[str], Argument(help="Words or labels.")],
    k: Annotated[int, Option("-k", min=1, help="Number of neighbours.")] = 10,
) -> None:
    """Show the nearest neighbours of words, by cosine."""
    from scenegpi.words.vectors import load_words

    vectors = load_words(file)
    known = [word for word in words if vectors.vector(word).any()]
    _print_neighbours(vectors, known, k)
    unknown = [word for word in words if word not in known]
    if unknown:
        raise DataError(file, f"not among its {len(vectors):,} words: {', '.join(unknown)}")


def _print_neighbours(vectors: WordVectors, words: list[str], k: int = 8) -> None:
    """One row per word: its k nearest neighbours and their cosines."""
    from rich.table import Table

    if not words:
        return
    table = Table("word", f"{k} nearest neighbours (cosine)", title=printable(vectors.source) or None)
    for word in words:
        near = ", ".join(f"{name} {cosine:.2f}" for name, cosine in vectors.neighbours(word, k))
        table.add_row(printable(word), printable(near))
    make_console().print(table)
