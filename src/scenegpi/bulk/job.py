"""One run: its folder, the settings that affect its answers, and the engine that does the work."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from scenegpi import __version__
from scenegpi.bulk.digests import weights_digest
from scenegpi.bulk.image_files import WHOLE
from scenegpi.bulk.ray_shards import run_ray, shard_settings
from scenegpi.bulk.run_folder import PredictionLog, choose_folder
from scenegpi.bulk.run_inputs import Inputs
from scenegpi.bulk.summary import Summary
from scenegpi.bulk.workers import Engine, Setup, run
from scenegpi.errors import DataError
from scenegpi.options import plain
from scenegpi.prediction.finding import default_finder
from scenegpi.prediction.options import FOUND_PLAIN, FOUND_RELATION, GIVEN_RELATION


def open_log(setup: Setup, engine: Engine, files: Collection[Path], inputs: Inputs | None = None) -> PredictionLog:
    """The log of a run, to be entered: in the folder of the setup, or the next free one if that holds another run.

    `files` are read, and so never written; `inputs` are the images, None for a video.
    """
    finder = setup.finder
    weights = weights_digest(setup.model, None if finder is None else finder.other)
    settings: dict[str, Any] = {
        "scenegpi": __version__,
        "model": setup.model,
        "weights": weights,
        "finder": finder.settings() if finder else default_finder(setup.backend),
        "options": plain(setup.options),
        "floors": [GIVEN_RELATION, FOUND_RELATION, FOUND_PLAIN],  # of a version: "by default" is no number
    }
    if inputs is not None and engine.kind == "ray":
        whole = next((kind for kind in setup.formats if kind in WHOLE), None)
        if whole is not None:
            raise DataError("--formats", f"{whole} holds all images in one file, which --engine ray does not write")
        settings |= shard_settings(inputs, engine.form, engine.shard)
    if inputs is not None and engine.force:  # otherwise only our own files are overwritten
        files = [*files, *inputs.photos_of_boxes()]
    folder = choose_folder(setup.folder, settings, engine.resume, engine.force)
    return PredictionLog(folder, settings, engine.force, files)


def run_images(
    inputs: Inputs, setup: Setup, engine: Engine, log: PredictionLog, step: Callable[[int], None]
) -> tuple[Summary, list[Path]]:
    """Predicts the images into an open log; returns the summary, and the files that hold all images."""
    threads = 0 if engine.jobs == 1 else max(1, (os.cpu_count() or 1) // engine.jobs)
    setup = replace(setup, folder=log.folder, threads=threads)
    if engine.kind == "ray":
        return run_ray(inputs, setup, engine, log, step), []
    summary = run(inputs, setup, engine, log, step)
    return summary, log.write_whole(setup.formats)
