"""PredCls without pixels on Visual Genome: FREQ, FREQ + overlap, and any trained models, in one table.

    python benchmarks/vg150_predcls.py --data VG150 --all-boxes VG150_ALLBOXES [--model NAME=FOLDER ...] [--json FILE]

Trains nothing but the frequency counts (on the training images of VG150 less the first --validation). (a) the test
images of VG150, (b) images with all their boxes. 95% intervals by bootstrap over images; the last column is the paired
difference in R@50 to the first model given.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from scenegpi.data import Dataset, open_dataset
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Plan, Protocol, RecallState, Result, compare
from scenegpi.models import load_model, predict_dataset
from scenegpi.models.freq import FrequencyPrior

Predict = Callable[[Dataset], Iterable[SceneGraph]]
COLUMNS = ("R@20", "R@50", "R@100", "ngR@50", "mR@50")


def score(predict: Predict, data: Dataset, name: str) -> Result:
    """Figures of one system on one data set."""
    plan = Plan(Protocol("predcls", data=name), data.vocabulary, bootstrap=1000)
    return RecallState(plan).stream(zip(predict(data), data, strict=True)).result()


def cell(result: Result, name: str) -> str:
    low, high = result.intervals[name]
    return f"{100 * result.figures[name]:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--all-boxes", type=Path, required=True)
    parser.add_argument("--validation", type=int, default=1291)
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FOLDER", help="a row; may be repeated")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    train = open_dataset(options.data, "train", validation=options.validation)
    systems: dict[str, Predict] = {
        "FREQ": FrequencyPrior.fit(train).predict_all,
        "FREQ + overlap": FrequencyPrior.fit(train, overlap=True).predict_all,
    }
    for word in options.model:
        name, _, folder = word.rpartition("=")
        model = load_model(folder)
        systems[name or folder] = lambda data, model=model: predict_dataset(model, data, "predcls")
    first = next((name for name in systems if not name.startswith("FREQ")), None)
    found: dict[str, dict[str, Result]] = {}
    for title, data in (
        ("(a) test", open_dataset(options.data, "test")),
        ("(b) all boxes", open_dataset(options.all_boxes)),
    ):
        results = {name: score(predict, data, title) for name, predict in systems.items()}
        found[title] = results
        table = Table(title=f"{title}: {len(data):,} images, PredCls, graph constraint, in percent")
        for column in ("", *COLUMNS, f"R@50 - {first}" if first else ""):
            table.add_column(column, justify="left" if not column else "right")
        for name, result in results.items():
            gain = ""
            if first and name != first:
                found_gain = compare(results[first], result)["R@50"]
                gain = f"{100 * found_gain.difference:+.2f} [{100 * found_gain.low:+.2f}, {100 * found_gain.high:+.2f}]"
            table.add_row(name, *(cell(result, column) for column in COLUMNS), gain)
        Console(width=150).print(table)
    if options.json:
        plain = {title: {name: result.to_dict() for name, result in rows.items()} for title, rows in found.items()}
        options.json.write_text(json.dumps(plain, indent=1))


if __name__ == "__main__":
    main()
