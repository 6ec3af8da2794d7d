"""Are the graphs right? Draws photos by a seed, predicts them for a person to judge, and counts the verdicts.

    python benchmarks/judged.py draw --data VG150 --photos DIR --out FOLDER [--model M] [--finder F] [--count 40] \
        [--split val --validation 1291 --seed 3 --floors 0.15 0.05 --min-relation 0.006]
    python benchmarks/judged.py verdicts FOLDER FILE ...
    python benchmarks/judged.py count FILE ...

`draw` writes a picture of each photo with its boxes and a list of its triplets, as `scenegpi predict` would give them,
and FOLDER/judged.json with a place for the verdicts: one letter per triplet, r(ight) or w(rong), from a first, lenient
and a second, strict look. A triplet is right if both objects are there, in their boxes, and the relation holds; beside
them, of the (up to) five things that one would name first, how many have a box and an acceptable name ("salient"), and
whether one would show the graph to a friend. `verdicts` takes these from files of judges, {"NN": {"lenient": "rw",
"strict": "ww", "salient": [2, 5], "show": "n"}} by the picture's number. Pictures show photos and stay where they are;
judged.json holds none, and `count` prints its figures.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from finder import photos_of
from scenegpi.data import open_dataset
from scenegpi.files import read_object, write_json
from scenegpi.models import load_model
from scenegpi.prediction import PredictOptions, Predictor
from scenegpi.prediction.finding import default_finder, load_finder
from scenegpi.prediction.rules import PLAIN
from scenegpi.vision.photos import open_photo
from scenegpi.vocabulary import spoken

_SPATIAL = """
above across against along at behind between beneath below beside by in inside near next-to on over under
outside-of adjacent-to far-from in-front-of in-the-front-of on-back-of on-the-left-of on-the-right-of
on-the-top-of to-the-left-of to-the-right-of
"""
SPATIAL = frozenset(_SPATIAL.split())
SHEET = (1180, 700)
SCORES = (0.0, 0.02, 0.025, 0.03, 0.035, 0.04, 0.05, 0.08)
ENDS = (0.15, 0.2, 0.25)


def is_spatial(predicate: str) -> bool:
    """Whether a predicate only says where things are (Zellers et al. 2018 call these geometric)."""
    return predicate.replace(" ", "-") in SPATIAL


def draw(options: argparse.Namespace) -> None:
    dataset = open_dataset(options.data, options.split, images=options.photos, validation=options.validation)
    photos = photos_of(dataset, relations=False)
    chosen = np.sort(np.random.default_rng(options.seed).permutation(len(photos))[: options.count]).tolist()
    model, name = load_model(options.model), options.finder or default_finder()
    finder: Any = load_finder(name, model)
    if options.floors is not None:
        finder.config = replace(finder.config, floor=options.floors[0], named_floor=options.floors[1])
    predictor = Predictor(model, finder, options=PredictOptions(min_relation=options.min_relation))
    entries = []
    for number, i in enumerate(chosen):
        path, truth = photos[i]
        graph = predictor(path)
        lines = [
            f"{spoken(t.subject)}[{t.subject_index}] - {t.predicate} - "
            f"{spoken(t.object)}[{t.object_index}] ({t.score:.3f})"
            for t in graph.triplets()
        ]
        ends = graph.scores[graph.relations[:, :2]].min(axis=1).round(3).tolist() if lines else []
        entries.append({"image": truth.image_id, "triplets": lines, "ends": ends, "first": "", "second": ""})
        sheet(path, graph, lines, number).save(options.out / f"{number:02d}.png")
    about = {"model": options.model, "finder": name, "seed": options.seed, "data": options.data.name}
    write_json(options.out / "judged.json", {**about, "images": entries})
    print(f"{len(entries)} photos, {sum(len(e['triplets']) for e in entries)} triplets -> {options.out}")


def sheet(path: Path, graph: object, lines: list[str], number: int) -> Image.Image:
    """The photo with its numbered boxes, and the triplets below it."""
    photo = Image.fromarray(open_photo(path))
    width, height = graph.width or photo.width, graph.height or photo.height  # type: ignore[attr-defined]
    side = SHEET[1]
    page = Image.new("RGB", SHEET, "white")
    page.paste(photo.resize((side, side)), (0, 0))
    pen = ImageDraw.Draw(page)
    pen.text((side + 4, 2), f"{number}", fill="black")
    for k, (box, name) in enumerate(zip(graph.boxes, graph.names, strict=True)):  # type: ignore[attr-defined]
        x1, y1, x2, y2 = box * np.array([side / width, side / height] * 2)
        colour = f"hsl({(k * 67) % 360}, 90%, 45%)"
        pen.rectangle((x1, y1, x2, y2), outline=colour, width=2)
        pen.text((x1 + 2, y1 + 1), f"{spoken(name)} {k}", fill=colour)
    for k, line in enumerate(lines):
        pen.text((side + 8, 16 + 13 * k), line, fill="black")
    return page


def verdicts(folder: Path, files: list[Path]) -> None:
    """Of judges, into FOLDER/judged.json."""
    data = read_object(folder / "judged.json")
    said = {number: verdict for file in files for number, verdict in read_object(file).items()}
    for number, entry in enumerate(data["images"]):
        verdict = said[f"{number:02d}"]
        entry["first"], entry["second"] = verdict["lenient"], verdict["strict"]
        if not len(entry["first"]) == len(entry["second"]) == len(entry["triplets"]):
            raise SystemExit(f"{number:02d}: {len(entry['triplets'])} triplets, but {verdict}")
        entry["salient"], entry["friend"] = verdict["salient"], int(verdict["show"] == "y")
    write_json(folder / "judged.json", data)


def count(files: list[Path]) -> None:
    for file in files:
        data = read_object(file)
        print(f"{file.stem}: {data['model']} with {data['finder']}, {len(data['images'])} photos of {data['data']}")
        triplets = [t for e in data["images"] for t in e["triplets"]]
        empty = sum(not e["triplets"] for e in data["images"])
        words = [line.split(" - ")[1] for line in triplets]
        spatial = sum(map(is_spatial, words))
        print(f"  {len(triplets)} triplets, {empty} empty graphs ({100 * empty / len(data['images']):.0f}%)")
        said = ", ".join(f"{word} {times}" for word, times in Counter(words).most_common(6))
        print(f"  not spatial: {100 - 100 * spatial / max(len(triplets), 1):.0f}%; {said}")
        if all("salient" in e for e in data["images"]):
            found, named = (sum(e["salient"][k] for e in data["images"]) for k in range(2))
            friends = sum(e["friend"] for e in data["images"])
            print(f"  salient things: {found} of {named} ({100 * found / named:.1f}%); worth showing: {friends}")
        for look in ("first", "second"):
            verdicts = "".join(e[look] for e in data["images"])
            if len(verdicts) == len(triplets):
                print(by_score(triplets, verdicts, [end for e in data["images"] for end in e.get("ends", [])]))
                print(f"  right, {look} look: {verdicts.count('r')} ({100 * verdicts.count('r') / len(triplets):.0f}%)")
        both = "".join(
            "r" if a == b == "r" else "w" for e in data["images"] for a, b in zip(e["first"], e["second"], strict=False)
        )
        if len(both) == len(triplets):
            print(f"  right in both: {both.count('r')} ({100 * both.count('r') / len(triplets):.0f}%)")


def by_score(triplets: list[str], verdicts: str, ends: list[float]) -> str:
    """The share that is right from each of some scores on; and of a kind, or where no box is too unsure."""
    scores = np.array([float(line.rpartition("(")[2].rstrip(")")) for line in triplets])
    right, lines = np.array([letter == "r" for letter in verdicts]), []
    plain = np.array([line.split(" - ")[1] in PLAIN for line in triplets])
    masks = {"boxes from 0": scores >= 0, "place and ownership": plain, "others": ~plain}
    masks |= {f"boxes from {x}": np.array(ends) >= x for x in ENDS if len(ends) == len(triplets)}
    for title, some in masks.items():
        parts = [
            f"from {low} {100 * right[some & (scores >= low)].mean():.0f}% of {(some & (scores >= low)).sum()}"
            for low in SCORES
            if (some & (scores >= low)).any()
        ]
        lines.append(f"  {title}: " + ", ".join(parts))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw")
    drawing.add_argument("--data", type=Path, required=True)
    drawing.add_argument("--photos", type=Path)
    drawing.add_argument("--split", default="test")
    drawing.add_argument("--validation", type=int, help="number of images that --split val stands for")
    drawing.add_argument("--model", default="vg150-photo")
    drawing.add_argument("--finder")
    drawing.add_argument("--seed", type=int, default=0)
    drawing.add_argument("--count", type=int, default=40)
    drawing.add_argument("--floors", type=float, nargs=2, help="of the boxes: chance, chance times P(label)")
    drawing.add_argument("--min-relation", type=float, help="least score of a relation; by default as in use")
    drawing.add_argument("--out", type=Path, required=True)
    judging = commands.add_parser("verdicts")
    judging.add_argument("folder", type=Path)
    judging.add_argument("files", type=Path, nargs="+")
    counting = commands.add_parser("count")
    counting.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    if options.command == "draw":
        options.out.mkdir(parents=True, exist_ok=True)
        draw(options)
    elif options.command == "verdicts":
        verdicts(options.folder, options.files)
    else:
        count(options.files)


if __name__ == "__main__":
    main()
