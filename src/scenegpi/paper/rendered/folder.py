"""Many rendered scenes in a folder, in the Visual Genome layout: the three files, and pictures in `images`."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from multiprocessing import get_context
from pathlib import Path
from random import Random

from scenegpi.data.export.data_sets import write_visual_genome
from scenegpi.data.graphs import SPLITS
from scenegpi.errors import DataError
from scenegpi.files import whole_folder
from scenegpi.graph import SceneGraph
from scenegpi.paper.rendered.scene import render_scene
from scenegpi.paper.rendered.stage import SceneOptions
from scenegpi.paper.rendered.things import rendered_vocabulary

Made = tuple[SceneGraph, bytes]
MOST = 1_000_000
CHUNK = 8


def render_folder(
    target: str | Path,
    images: int,
    seed: int = 0,
    options: SceneOptions | None = None,
    validation: float = 0.1,
    test: float = 0.2,
    jobs: int = 1,
    watch: Callable[[Iterable[Made]], Iterable[Made]] = iter,
) -> list[SceneGraph]:
    """Writes scenes, completely or not at all, and returns their graphs.

    Picture k depends on the seed and k alone, not on `images` or `jobs`. `watch` wraps the iterator of scenes, for a
    progress bar.
    """
    target = Path(target)
    if not 1 <= images <= MOST:
        raise DataError(target, f"images: expected 1 to {MOST:,}, found {images:,}")
    if validation < 0 or test < 0 or validation + test > 1:
        raise DataError(
            target, f"fractions: validation {validation:g} and test {test:g} must be 0 or more, together at most 1"
        )
    if target.is_dir() and any(target.iterdir()):
        raise DataError(target, "exists already and is not empty; give a new folder")
    graphs = []
    with whole_folder(target) as part, _scenes(images, seed, options or SceneOptions(), jobs) as scenes:
        (part / "images").mkdir()
        for graph, jpeg in watch(scenes):
            assert graph.file is not None
            (part / "images" / graph.file).write_bytes(jpeg)
            graphs.append(graph)
        splits = [split_of(seed, k, validation, test) for k in range(images)]
        write_visual_genome(part, graphs, splits, rendered_vocabulary(), overwrite=True)
    return graphs


def split_of(seed: int, index: int, validation: float, test: float) -> int:
    """The split code of a scene, drawn by seed and index alone: a longer run begins with the shorter one."""
    luck = Random(f"scenegpi split {seed} {index}").random()
    return SPLITS["test" if luck < test else "val" if luck < test + validation else "train"]


def make(index: int, seed: int, options: SceneOptions) -> Made:
    """Scene `index` as a graph and a JPEG. The quality varies as that of photos does."""
    image, graph = render_scene(seed, index, options)
    quality = Random(f"scenegpi quality {seed} {index}").randrange(72, 95)
    memory = BytesIO()
    image.save(memory, "JPEG", quality=quality)
    return graph, memory.getvalue()


@contextmanager
def _scenes(images: int, seed: int, options: SceneOptions, jobs: int) -> Iterator[Iterable[Made]]:
    work = partial(make, seed=seed, options=options)
    if jobs <= 1 or images <= CHUNK:
        yield map(work, range(images))
        return
    deaf = (signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the parent, which ends its children
    with get_context("spawn").Pool(min(jobs, -(-images // CHUNK)), signal.signal, deaf) as pool:
        yield pool.imap(work, range(images), CHUNK)
