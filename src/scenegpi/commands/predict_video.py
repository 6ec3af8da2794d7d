"""`scenegpi predict video.mp4`: one JSON line per frame, things numbered through the video, a clip or a sheet."""

from __future__ import annotations

import json
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from scenegpi.commands.predict_output import LINES
from scenegpi.commands.predict_run import Setup
from scenegpi.commands.terminal import say
from scenegpi.data.video import frames, video_rate
from scenegpi.errors import counted
from scenegpi.files import whole_file
from scenegpi.graph_json import to_dict
from scenegpi.prediction import Item, Predictor
from scenegpi.prediction.tracking import Tracker
from scenegpi.progress import progress

CLIP, SHEET = "clip.mp4", "frames.png"


def predict_video(path: Path, every: int, limit: int, setup: Setup) -> None:
    """Reads, predicts, tracks and writes frame by frame; nothing is kept but what the sheet shows."""
    from scenegpi.viz.clip import FrameSheet, frame_picture, open_clip

    predictor = Predictor(setup.model, setup.finder, setup.options, setup.device, setup.backend)
    tracker, sheet = Tracker(), FrameSheet()
    written: set[str] = set()
    count, problems = 0, []
    target = setup.folder / LINES
    with ExitStack() as stack:
        part = stack.enter_context(whole_file(target))
        lines = stack.enter_context(part.open("w", encoding="utf-8", errors="replace"))
        clip = None
        if "mp4" in setup.formats:
            clip = stack.enter_context(open_clip(setup.folder / CLIP, video_rate(path) / every))
        step = stack.enter_context(progress("frames"))
        for frame in islice(frames(path, every), limit or None):
            # One at a time: a batch of large frames would fill the memory.
            item = Item(frame.photo, key=f"{path.name}, frame {frame.number}")
            found = next(predictor.stream([item]))
            step(1)
            if found.graph is None:
                problems.append(found.problem)
                continue
            count += 1
            numbers = tracker(found.graph).tolist()
            reference = found.graph.vocabulary.reference
            data = to_dict(found.graph, vocabulary=reference not in written)
            written.add(reference)
            for row, number in zip(data["objects"], numbers, strict=True):
                row["thing"] = number
            data |= {"source": path.as_posix(), "frame": frame.number, "seconds": round(frame.seconds, 3)}
            lines.write(json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n")
            if setup.formats:
                picture = frame_picture(frame.photo, found.graph, numbers, frame.seconds)
                sheet.add(picture)
                if clip is not None:
                    clip.add(picture)
    if "png" in setup.formats:
        sheet.save(setup.folder / SHEET)
    say(f"wrote {target}: {counted(count, 'frame')}, {counted(tracker.things, 'thing')}")
    for line in problems[:5]:
        say(f"skipped: {line}", error=True)
