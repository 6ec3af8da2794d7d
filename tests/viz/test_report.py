"""The report without a browser: markup that can't be broken, which images, what files it reads, how large it gets."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from conftest import ROOT
from models.model_cases import predict_graphs, small_model
from scenegpi import SceneGraph, Vocabulary
from scenegpi.bulk.digests import image_digest
from scenegpi.cli import app
from scenegpi.data import DataError, open_dataset, sample_path, write_jsonl
from scenegpi.graph_json import to_dict
from scenegpi.metrics.protocol import Protocol
from scenegpi.metrics.result import Result
from scenegpi.models.checkpoint import save_model
from scenegpi.viz.report.charts import curves, dot_plot, known_series, nice_range
from scenegpi.viz.report.exhibit import Exhibit, choose, middle, of_predictions
from scenegpi.viz.report.markup import Html, data_block, h, source_hash
from scenegpi.viz.report.page import asset, render
from scenegpi.viz.report.sections import predicate_section
from scenegpi.viz.report.source import read_source
from training.training_cases import data_file, small_config
from viz.report_cases import hostile_graphs, hostile_model, make_report


class Seen(HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


@given(st.text(), st.text())
def test_any_text_stays_text(words, value):
    seen = Seen(h("p", words, title=value))
    assert seen.tags == ["p"]
    assert [name for name, _ in seen.attributes] == ["title"]
    kept = "".join(c if c.isprintable() or c in "\n\t " else "�" for c in words)
    assert seen.text == kept


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_data_stays_data(value):
    block = data_block("data", value)
    inner = block.removeprefix('<script type="application/json" id="data">').removesuffix("</script>")
    assert json.loads(inner) == value
    assert not set("<>&\u2028\u2029") & set(inner)


def test_markup():
    assert h("br") == "<br>"
    assert h("a", Html("<b>"), None, ["x", 1.500], class_="k", data_box=3, hidden=False, disabled=True, id=None) == (
        '<a class="k" data-box="3" disabled><b>x1.5</a>'
    )
    assert h("p", math.nan) == "<p>0</p>"


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    return make_report(tmp_path_factory.mktemp("report")).read_text()


def test_the_policy_names_the_page_s_own_script_and_style_and_nothing_else(page):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page).group(1)
    style, script = asset("base.css") + asset("report.css"), asset("gallery.js") + asset("report.js")
    assert f"<style>{style}</style>" in page
    assert f"<script>{script}</script>" in page
    assert f"style-src {source_hash(style)};" in policy
    assert f"script-src {source_hash(script)};" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http:" not in policy


def test_the_page_refers_to_nothing_outside(page):
    seen = Seen(page)
    for name, value in seen.attributes:
        if name in ("href", "src", "xlink:href", "action"):
            assert value.startswith(("#", "data:")), (name, value)
        assert not name.startswith("on")
    assert not {"img", "iframe", "object", "embed", "form", "b"} & set(seen.tags)
    assert seen.tags.count("script") == 2
    assert seen.tags.count("style") == 1


def test_ids_are_unique_and_references_lead_somewhere(page):
    seen = Seen(page)
    ids = [value for name, value in seen.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    for name, value in seen.attributes:
        if name in ("aria-controls", "aria-labelledby"):
            assert value in ids
        if name == "href" and value.startswith("#"):
            assert value[1:] in ids


def test_an_image_costs_a_bounded_number_of_bytes(tmp_path):
    sizes = {}
    for shown in (0, 3, 6):
        (tmp_path / str(shown)).mkdir()
        sizes[shown] = make_report(tmp_path / str(shown), shown=shown).stat().st_size
    assert sizes[0] < 120_000
    assert (sizes[6] - sizes[0]) / 6 < 150_000


def test_which_images_are_chosen():
    recall = np.array([[0.5, 4], [0.0, 2], [1.0, 9], [np.nan, 0], [0.0, 7], [1.0, 3], [0.6, 1], [0.5, 8]])
    assert choose(recall, 3) == {4: "worst", 7: "typical", 2: "best"}
    assert list(choose(recall, 6).values()) == ["worst"] * 2 + ["typical"] * 2 + ["best"] * 2
    assert set(choose(recall, 60)) == set(range(8)) - {3}
    assert choose(recall, 0) == {}
    assert len(choose(recall, 1)) == 1
    assert choose(recall[:0], 5) == {}


@given(st.integers(1, 20), st.integers(1, 30), st.integers(0, 99))
def test_as_many_images_as_asked_for(count, n, seed):
    recall = np.column_stack([np.random.default_rng(seed).integers(0, 4, n) / 3, np.full(n, 5.0)])
    chosen = choose(recall, count)
    assert len(chosen) == min(count, n)
    by = {why: [recall[k, 0] for k in chosen if chosen[k] == why] for why in ("worst", "best")}
    if by["best"]:
        assert max(by["worst"]) <= min(by["best"])


def test_recall_of_each_image_is_what_the_figures_average():
    graphs = hostile_graphs(5)
    exhibit = Exhibit.of_model(hostile_model(), graphs, lambda _: None, "predcls")
    protocol = Protocol(ks=(2, 4, 8))
    result, recall = exhibit.score(protocol, bootstrap=0)
    assert middle(protocol) == 4
    assert result.figures["R@4"] == pytest.approx(np.nanmean(recall[:, 0]))
    assert recall[:, 1].tolist() == [len(graph.relations) for graph in graphs]


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_ranges_hold_their_values(low, width):
    bottom, top, ticks = nice_range(low, low + width)
    assert bottom <= low + 1e-6 * max(1, abs(low))
    assert top >= low + width - 1e-6 * max(1, abs(low + width))
    assert 2 <= len(ticks) <= 8
    assert len(set(ticks)) == len(ticks)


def test_curves_with_gaps_and_one_epoch():
    log = [{"epoch": 1.0, "loss": 2.0}, {"epoch": 2.0}, {"epoch": 3.0, "loss": 1.0, "R@50": 5.0}]
    chart, data = curves("c", "loss", [1.0, 2.0, 3.0], known_series(log, ("loss", "R@50")), None)
    assert data["series"] == [["loss", [2.0, None, 1.0]], ["R@50", [None, None, 5.0]]]
    assert "nan" not in chart
    single, _ = curves("c", "loss", [1.0], known_series(log[:1], ("loss",)), 1.0)
    assert "nan" not in single
    plot = dot_plot("R@50", [("a", 0.5, (0.4, 0.6))], [("b", 0.5, None), ("c", 0.7, None)])
    assert plot.index(">a<") < plot.index(">c<") < plot.index(">b<")


def test_only_visual_genome_stands_beside_published_figures(page):
    from scenegpi import load_model
    from scenegpi.viz.report.sections import is_visual_genome

    names = frozenset(load_model("vg150-layout").vocabulary.predicates)
    assert is_visual_genome(names)
    assert not is_visual_genome(names - {"on"})
    assert not is_visual_genome(frozenset(f"p{k}" for k in range(50)))
    assert 'id="published"' in render(read_source("vg150-layout"), None)
    assert "upright mark" not in page


def test_a_run_that_is_not_one(tmp_path):
    with pytest.raises(DataError, match="nowhere"):
        read_source(tmp_path / "nowhere")
    bad = tmp_path / "bad.json"
    bad.write_text('{"figures": {}}')
    with pytest.raises(DataError, match=r"bad\.json: not a file of `scenegpi eval --json` \(.*protocol"):
        read_source(bad)
    bad.write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"bad\.json"):
        read_source(bad)
    run = tmp_path / "run"
    run.mkdir()
    (run / "log.csv").write_bytes(b"epoch,loss\n1,\xff\xfe\n")
    with pytest.raises(DataError, match=r"log\.csv: not a log of a run"):
        read_source(run)
    (run / "log.csv").write_text("epoch,loss,</script>\n1,nan,3\n2,abc\n3,1.5,inf,9,9\n")
    assert read_source(run).log == [{"epoch": 1, "</script>": 3}, {"epoch": 2}, {"epoch": 3, "loss": 1.5}]
    assert "&lt;/script&gt;" in render(read_source(run), None)


def test_names_at_the_ends_of_curves_are_whole_and_apart():
    perfect = [{"epoch": float(e), "R@20": 100.0, "R@50": 100.0, "R@100": 100.0} for e in (1, 2)]
    chart, _ = curves("c", "recall", [1.0, 2.0], known_series(perfect, ("R@20", "R@50", "R@100")), None)
    heights = sorted(float(y) for y in re.findall(r'class="end [^>]*y="([^"]+)"', chart))
    assert len(heights) == 3
    assert heights[0] >= 12  # a line of text is about 12 high
    assert np.diff(heights).min() >= 14


@pytest.mark.parametrize("count", [1, 2])
def test_one_thing_is_not_called_several(tmp_path, count):
    (tmp_path / "log.csv").write_text("epoch,loss,seconds\n" + "".join(f"{k},1,1\n" for k in range(count)))
    page = render(read_source(tmp_path), None)
    counts = {"on": 3.0} | dict.fromkeys(("in", "at")[:count], 0.0)
    page += predicate_section(Result(Protocol(), {}, {}, {}, {"relations": counts}, {}, []))
    plural = "" if count == 1 else "s"
    for name in ("epoch", "second", "predicate"):
        assert re.search(rf"\b{count} {name}{plural}\b", page), name


def test_where_all_images_are_equal_none_is_the_worst():
    assert set(choose(np.array([[1.0, 3], [1.0, 5]]), 12).values()) == {"typical"}


def test_predictions_are_a_gallery_of_photos(tmp_path):
    from PIL import Image

    vocabulary = Vocabulary(["men", "hat"], ["wearing"])
    Image.new("RGB", (60, 40), (9, 200, 60)).save(tmp_path / "a.png")
    graph = SceneGraph(
        [[0, 0, 30, 30], [5, 0, 20, 9]],
        [0, 1],
        vocabulary,
        [(0, 1, 0)],
        file="a.png",
        width=60,
        height=40,
        relation_scores=[0.25],
    )
    none = SceneGraph([], [], vocabulary, file="b.png", width=60, height=40)
    run = tmp_path / "run"
    run.mkdir()
    lines = [to_dict(graph, photo=str(tmp_path / "a.png")), to_dict(none, photo="/nowhere/b.png")]
    (run / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    pages = []
    for path in (run, run / "predictions.jsonl"):
        done = run_command(path, "--out", tmp_path / "r.html")
        assert done.exit_code == 0, done.output
        assert "r.html: 2 images" in done.output
        assert "1 photo not found; give their folder with --photos" in done.output
        pages.append((tmp_path / "r.html").read_text())
    assert pages[0] == pages[1]
    page = pages[0]
    assert "data:image/" in page
    assert page.index("people") < page.index("wearing")
    assert "0.25" in page
    assert "No relation is likely enough." in page
    for word in ("ground truth", "worst", "missed by", 'id="figures"'):
        assert word not in page.split("<main")[-1].split("</main>")[0].lower()
    assert "1 image of 2" in run_command(run, "--out", tmp_path / "r.html", "--limit", 1).output


def test_a_graph_is_not_shown_on_a_photo_that_it_was_not_made_from(tmp_path):
    """Two photos of one name, which are moved, and of which one is replaced."""
    from PIL import Image

    words, run, lines = Vocabulary(["hat"], ["on"]), tmp_path / "run", []
    for side, colour in (("a", "red"), ("b", "blue")):
        photo = tmp_path / side / "p.png"
        photo.parent.mkdir()
        Image.new("RGB", (60, 40), colour).save(photo)
        graph = SceneGraph([[0, 0, 30, 30]], [0], words, file="p.png", width=60, height=40)
        lines.append(to_dict(graph, photo=str(photo), digest=image_digest(photo, None, "s")))
    run.mkdir()
    (run / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "moved").mkdir()
    for side in "ab":
        (tmp_path / side).rename(tmp_path / "moved" / side)
    found, _, changed = of_predictions(read_source(str(run)), tmp_path / "moved", 9)
    assert [each.photo for each in found] == [tmp_path / "moved" / side / "p.png" for side in "ab"]
    assert changed == 0
    Image.new("RGB", (60, 40), "green").save(tmp_path / "moved" / "a" / "p.png")
    said = run_command(run, "--out", tmp_path / "r.html", "--photos", tmp_path / "moved").output
    assert "1 photo not shown, as changed since: predict again" in said
    assert "not found" not in said
    assert (tmp_path / "r.html").read_text().count("data:image/") == 1


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(DataError, match="neither a run of `predict` or `train` nor a model"):
        read_source(tmp_path)


def run_command(*words):
    return CliRunner().invoke(app, ["report", *map(str, words)])


def test_a_training_run(tmp_path):
    from scenegpi.training.run import train

    train(small_config(data_file(tmp_path)), tmp_path / "run")
    done = run_command(tmp_path / "run", "--out", tmp_path / "r.html", "--limit", 3)
    assert done.exit_code == 0, done.output
    assert "r.html: 3 images" in done.output
    page = (tmp_path / "r.html").read_text()
    for part in (
        'id="chart-loss"',
        'id="chart-recall"',
        'id="predicates"',
        'id="gallery"',
        "validation images of",
        "preset gpi-feature-attention",
    ):
        assert part in page
    (tmp_path / "data.jsonl").unlink()  # without its data, what the run says of itself is left
    done = run_command(tmp_path / "run", "--out", tmp_path / "r.html")
    assert "0 images" in done.output
    assert "--data" in done.output
    assert 'id="gallery"' not in (tmp_path / "r.html").read_text()


def test_an_evaluation_of_a_model_and_of_a_file(tmp_path):
    model = small_model("gpi-no-attention")
    save_model(model, tmp_path / "model")
    data = data_file(tmp_path, images=6)
    graphs = list(open_dataset(data))
    write_jsonl(tmp_path / "said.jsonl", list(predict_graphs(model, graphs, "predcls")))
    run = CliRunner().invoke
    evaluate = [
        "eval",
        "--task",
        "predcls",
        "--data",
        str(data),
        "--bootstrap",
        "0",
        "--json",
        str(tmp_path / "e.json"),
    ]
    assert run(app, [*evaluate, "--model", str(tmp_path / "model")]).exit_code == 0
    done = run_command(tmp_path / "e.json", "--out", tmp_path / "a.html", "--limit", 4)  # it says where its data is
    assert "a.html: 4 images" in done.output
    page = (tmp_path / "a.html").read_text()
    assert 'class="attention"' not in page  # a model that weighs nothing
    assert run(app, [*evaluate, str(tmp_path / "said.jsonl")]).exit_code == 0
    done = run_command(tmp_path / "e.json", "--out", tmp_path / "b.html", "--data", data, "--limit", 4)
    assert "b.html: 4 images" in done.output
    shown = [re.findall(r"<h3>(\d+)</h3>", text) for text in (page, (tmp_path / "b.html").read_text())]
    assert shown[0] == shown[1]
    assert len(shown[0]) == 4
    data.rename(tmp_path / "moved.jsonl")
    assert "no images" in run_command(tmp_path / "e.json", "--out", tmp_path / "c.html").output


def test_a_shipped_model_on_the_sample(tmp_path):
    done = run_command("vg150-layout", "--data", sample_path(), "--out", tmp_path / "r.html")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "r.html").read_text()
    assert "sample-1.jpg" in page
    assert "vg150 test" in page  # the figures of its card
    assert 'class="attention"' in page
    assert isinstance(run_command("vg150-layout", "--out", tmp_path / "r.pdf").exception, DataError)
    again = tmp_path / "again.html"
    run_command("vg150-layout", "--data", sample_path(), "--out", again)
    assert again.read_text() == page  # the same input, the same file


def test_template_files_are_shipped():
    text = (ROOT / "pyproject.toml").read_text()
    for path in (ROOT / "src/scenegpi/viz/report").iterdir():
        if path.suffix in (".html", ".css", ".js"):
            assert f'"viz/report/*{path.suffix}"' in text
