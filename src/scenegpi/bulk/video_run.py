"""A video in a run: one line per frame, things numbered through the video, each with one label; a sheet and a clip.

Frames are read twice and never kept: once to predict, and once to draw the result, if pictures are wanted. In between,
the frames vote on the label of each thing, by their scores. Lines of an earlier run on the same video are dropped.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scenegpi.bulk.digests import NONE, photo_digest
from scenegpi.bulk.manifest import written_by_us
from scenegpi.bulk.run_folder import CLIP, FRAME, SHEET, PredictionLog, Row, prediction_lines
from scenegpi.bulk.workers import Setup
from scenegpi.data.images import SUFFIXES
from scenegpi.data.video import Frame, frames, video_rate
from scenegpi.errors import printable
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import from_dict
from scenegpi.prediction import Item
from scenegpi.prediction.tracking import Tracker
from scenegpi.vocabulary import spoken

AddFrame = Callable[[Any, SceneGraph, Sequence[int], float], None]
Film = Callable[[Path | None, Path | None, float], AbstractContextManager[AddFrame]]
"""Draws frames: a sheet, a clip or both (a path or None each), at a frame rate."""


class Seen(NamedTuple):
    """A relation of a video: its number of frames, and its best score."""

    subject: str
    predicate: str
    object: str
    frames: int
    score: float


@dataclass
class VideoSummary:
    """A whole video: frames, things, relations (those in most frames first), what was skipped, the files written."""

    frames: int = 0
    things: int = 0
    relations: list[Seen] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    written: list[Path] = field(default_factory=list)


def video_files(path: Path) -> list[Path]:
    """The files that are read: the video, or the pictures of a folder except those that we wrote."""
    if not path.is_dir():
        return [path]
    ours = written_by_us(path)
    return [file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and file.name not in ours]


def run_video(
    path: Path, every: int, limit: int, setup: Setup, log: PredictionLog, film: Film, step: Callable[[], None]
) -> VideoSummary:
    """Predicts a video file, or a folder of frames, into an open log."""
    video = _Video(path, every, limit, log)
    summary = VideoSummary()
    names = {"png": f"{video.name}{SHEET}.png", "mp4": f"{video.name}{CLIP}.mp4"}
    there = [name for name in names.values() if name in log.manifest.names and (log.folder / name).is_file()]
    wanted = {kind: name for kind, name in names.items() if kind in setup.formats or name in there}
    log.manifest.claim(wanted.values())
    votes = video.predict(setup, summary, step)
    log.rewrite(lambda row: video.voted(row, votes))
    if wanted and summary.frames:
        files = {kind: log.folder / name for kind, name in wanted.items()}
        with film(files.get("png"), files.get("mp4"), video_rate(path) / every) as add:
            video.draw(add)
        summary.written += files.values()
    summary.written += log.write_whole()
    summary.relations = video.relations()
    return summary


Votes = dict[int, Counter[str]]
"""Sums of scores of each label, for each thing."""


class _Video:
    def __init__(self, path: Path, every: int, limit: int, log: PredictionLog) -> None:
        self.path, self.every, self.limit, self.log = path, every, limit, log
        self.source = os.path.abspath(path).encode(errors="backslashreplace").decode()
        prefix = self.source + FRAME
        before = next((done.name for source, done in log.done.items() if source.startswith(prefix)), None)
        self.name = before or log.names()(self.source, path.stem or "video")
        self.sources: set[str] = set()

    def frames(self) -> Iterator[Frame]:
        return islice(frames(self.path, self.every, written_by_us(self.path)), self.limit or None)

    def predict(self, setup: Setup, summary: VideoSummary, step: Callable[[], None]) -> Votes:
        """Adds a line per frame."""
        predictor = setup.predictor()
        tracker, votes = Tracker(), defaultdict[int, Counter[str]](Counter)
        content = NONE if self.path.is_dir() else photo_digest(self.path)
        for frame in self.frames():
            # One at a time: a batch of large frames could exhaust the memory.
            found = next(predictor.stream([Item(frame.photo, key=f"{self.path.name}{FRAME}{frame.number}")]))
            step()
            if found.graph is None:
                summary.skipped.append(printable(found.problem))
                continue
            summary.frames += 1
            numbers = tracker(found.graph).tolist()
            scores = np.ones(len(found.graph)) if found.graph.scores is None else found.graph.scores
            for number, label, score in zip(numbers, found.graph.names, scores.tolist(), strict=True):
                votes[number][label] += score
            photo = Path(frame.photo) if isinstance(frame.photo, str | Path) else None
            digest = f"{content if photo is None else photo_digest(photo)}.{NONE}.{self.log.settings_digest}"
            more = {"video": self.source, "frame": frame.number, "seconds": round(frame.seconds, 3)}
            row = Row(f"{self.source}{FRAME}{frame.number}", self.name, found.graph, digest, photo, more, numbers)
            self.sources.add(row.source)
            self.log.append([row])
        summary.things = tracker.things
        return votes

    def voted(self, row: dict[str, Any], votes: Votes) -> dict[str, Any] | None:
        """The line with each thing's label by vote; None for lines of earlier runs."""
        if row.get("video") != self.source:
            return row
        if row["source"] not in self.sources:
            return None
        graph, things = from_dict(row), [each["thing"] for each in row["objects"]]
        best = [votes[number].most_common(1)[0][0] for number in things]
        if best == graph.names:
            return row
        labels = np.array([graph.vocabulary.object_index[name] for name in best], dtype=graph.labels.dtype)
        scores = graph.scores
        if scores is not None:
            shares = [votes[n][name] / max(votes[n].total(), 1e-9) for n, name in zip(things, best, strict=True)]
            scores = np.where(labels == graph.labels, scores, scores * np.array(shares)).astype(scores.dtype)
        new = Row(row["source"], row["name"], graph.replace(labels=labels, scores=scores), row["digest"], things=things)
        (line,) = prediction_lines([new], set())
        return {key: line.get(key, value) for key, value in row.items()}

    def lines(self) -> Iterator[tuple[int, SceneGraph, list[int]]]:
        """Number, graph and things of each frame that was predicted, in order."""
        for row, graph in self.log.predicted(self.sources):
            yield row["frame"], graph, [each["thing"] for each in row["objects"]]

    def draw(self, add: AddFrame) -> None:
        lines = self.lines()
        line = next(lines, None)
        for frame in self.frames():
            if line is not None and line[0] == frame.number:
                add(frame.photo, line[1], line[2], frame.seconds)
                line = next(lines, None)

    def relations(self) -> list[Seen]:
        seen: dict[tuple[str, str, str], tuple[int, float]] = {}
        for _, graph, things in self.lines():
            names = [f"{spoken(name)} #{number}" for name, number in zip(graph.names, things, strict=True)]
            for each in graph.triplets():
                key = (names[each.subject_index], each.predicate, names[each.object_index])
                count, score = seen.get(key, (0, 0.0))
                seen[key] = (count + 1, max(score, float(each.score)))
        return sorted((Seen(*key, *value) for key, value in seen.items()), key=lambda one: (-one.frames, -one.score))
