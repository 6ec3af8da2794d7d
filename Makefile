# Two commands: `make demo` and `make test`. Each sets up .venv on its own if it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: setup demo test lint types unit bench pictures docs wheel smoke clean

setup: $(STAMP)

# The editable install needs no rebuild when sources change, only when the declared dependencies do.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) --editable '.[dev]'
	$(INSTALL) --no-deps graphrag graphrag-common graphrag-storage sgbench  # tests use parts of them, without all that they ask for
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/scenegpi demo --out out/demo

test: lint types unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

unit: $(STAMP)
	$(BIN)/pytest -n 2 --dist worksteal

# Speed tables (minutes); accuracy benchmarks are commands of their own, see benchmarks/.
bench: $(STAMP)
	$(BIN)/python benchmarks/data_speed.py
	$(BIN)/python benchmarks/metrics_speed.py
	$(BIN)/python benchmarks/gpi_speed.py --quick
	$(BIN)/python tools/attack.py

# Made from what ships; the report is photographed by a browser (chromium and chromedriver). qualitative.png shows what
# context does to look-alikes (docs/lab/rendered.md): the model that was compared there no longer ships.
SCENES := out/pictures/scenes
pictures: $(STAMP)
	rm -rf out/pictures && mkdir -p out/pictures
	$(BIN)/scenegpi demo --out out/pictures/demo
	$(INSTALL) --no-deps --target out/pictures/photos scikit-image
	$(BIN)/scenegpi predict out/pictures/photos/skimage/data/chelsea.png --out out/pictures/cat
	cp out/pictures/cat/chelsea.png docs/images/hero.png
	mkdir out/pictures/few && for name in astronaut camera chelsea coffee; do cp out/pictures/photos/skimage/data/$$name.png out/pictures/few; done
	$(BIN)/scenegpi predict out/pictures/few --out out/pictures/gallery
	for name in astronaut camera chelsea coffee; do $(BIN)/python -c "import sys; from PIL import Image; Image.open(sys.argv[1]).convert('RGB').save(sys.argv[2], quality=85)" \
		out/pictures/gallery/$$name.png docs/images/gallery-$$name.jpg; done
	$(BIN)/scenegpi data show --out docs/images/scene.png
	$(BIN)/python -m scenegpi.paper.figures.matching docs/images/metrics-matching.png
	$(BIN)/python tools/rendered_pictures.py docs/images
	$(BIN)/scenegpi experiment labelling --draw docs/lab/labelling-results.json --out docs/images
	$(BIN)/scenegpi data render --scenes 200 --seed 3 --out $(SCENES)
	$(BIN)/scenegpi figure attention --out docs/images/attention.png
	$(BIN)/scenegpi figure proof --out docs/images/proof.png
	$(BIN)/scenegpi figure architecture --out docs/images/architecture.png
	$(BIN)/scenegpi report vg150-layout --data out/pictures/demo/scenes.jsonl --out out/pictures/report.html
	$(BIN)/python tools/screenshot.py "out/pictures/report.html#scene-1-box-0" docs/images/report.png
	$(BIN)/scenegpi index $(SCENES) --out out/pictures/store
	$(BIN)/scenegpi search out/pictures/store "person riding *" --limit 8 --out docs/images/search.png
	mkdir out/pictures/own
	cd out/pictures/photos/skimage/data && cp astronaut.png camera.png chelsea.png coffee.png rocket.jpg ../../../own
	$(BIN)/python tools/studio_pictures.py out/pictures/own docs/images

# The site: built without a network, complete without one. mkdocs is not part of the usual set-up.
DOCS := .venv/docs-installed
$(DOCS): $(STAMP)
	$(INSTALL) --editable '.[docs]'
	touch $(DOCS)

docs: $(DOCS)
	$(BIN)/mkdocs build --strict --site-dir out/site  # with --quiet warnings would not count
	! grep -rlE '<(script|link|img|iframe)[^>]+(src|href)="?(https?:)?//' --include='*.html' out/site
	@echo 'out/site/index.html, or with a search: $(PYTHON) -m http.server --directory out/site'

# By way of the source archive, so that this is complete as well; what an earlier build left would slip in.
wheel: $(STAMP)
	rm -rf dist build/lib build/bdist.*
	$(BIN)/python -m build --no-isolation --outdir dist .

# The wheel as a stranger meets it: a new environment, an empty folder, no repository.
SMOKE := build/smoke
smoke: wheel
	rm -rf $(SMOKE) && mkdir -p $(SMOKE)/empty && $(PYTHON) -m venv $(SMOKE)/venv
	$(SMOKE)/venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt dist/*.whl
	cd $(SMOKE)/empty && ../venv/bin/scenegpi demo --out demo
	cd $(SMOKE)/empty && ../venv/bin/scenegpi predict --boxes demo/scenes.jsonl --out graphs
	cd $(SMOKE)/empty && ../venv/bin/scenegpi report vg150-layout --data demo/scenes.jsonl --out report.html

clean:
	rm -rf .venv build dist out .pytest_cache .mypy_cache .ruff_cache
