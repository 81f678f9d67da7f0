# The two commands of the README: `make demo` and `make test`. Everything lands in .venv; nothing else is touched.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
OUT    ?= demo-report

.PHONY: demo test test-slow faults lint bench golden golden-record docs browser lucene clean

demo: $(VENV)/.base ## Audit the bundled rankers on the bundled sample
	$(BIN)/whyrank audit --precision fast --out $(OUT)
	@echo "Open $(OUT)/report.html in a browser."

test: $(VENV)/.dev browser lucene lint ## Lint, type-check and run every quick test
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow"

test-slow: $(VENV)/.dev ## The long tests: generated collections, real models
	$(BIN)/python -m pytest -m slow

faults: $(VENV)/.dev ## Kill long commands, damage files, fill disks, write twice at once: WHYRANK_FAULTS trials of each
	WHYRANK_FAULTS=$${WHYRANK_FAULTS:-20} $(BIN)/python -m pytest tests/faults tests/scoring/test_damaged_stores.py tests/scoring/test_resuming.py -rP

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev ## Time the hot paths beside their peers (set WHYRANK_DATA for the real collection)
	$(BIN)/python benchmarks/matched.py
	$(BIN)/python benchmarks/rescore.py
	$(BIN)/python benchmarks/axioms.py
	$(BIN)/python benchmarks/wmd.py
	$(BIN)/python benchmarks/scoring.py
	$(BIN)/python benchmarks/em.py
	$(BIN)/python benchmarks/model1.py
	$(BIN)/python benchmarks/bm25t.py
	$(BIN)/python benchmarks/fidelity.py

golden: $(VENV)/.dev ## Compare what the program answers with what was recorded (set WHYRANK_DATA for the real collection)
	$(BIN)/python benchmarks/golden.py compare

golden-record: $(VENV)/.dev ## Record what the program answers
	$(BIN)/python benchmarks/golden.py record

docs: $(VENV)/.docs ## Build the documentation site, notebooks included, into docs/_build/html
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html in a browser."

browser: ## A browser for the tests of the report, where apt can install one
	@command -v chromium >/dev/null || ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ] || \
	  { apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium >/dev/null; } || \
	  echo "no browser could be installed; its tests will be skipped"

lucene: ## Lucene's own parser for the tests of synonym files, where java is and apt can install it
	@ls /usr/share/java/lucene-core-*.jar >/dev/null 2>&1 || ! command -v java >/dev/null || ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ] || \
	  { apt-get -qq update && apt-get -qq install -y --no-install-recommends liblucene8-java >/dev/null; } || \
	  echo "Lucene could not be installed; its tests will be skipped"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt torch
	$(PIP) install --constraint constraints.txt --editable ".[nlp,models]"
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(PIP) install --constraint constraints.txt torch
	$(PIP) install --constraint constraints.txt --editable ".[dev,krovetz,data,nlp,models,fast,wmd,ltr,http,pandas,polars,pyterrier,datasets,ray,web]"
	@touch $@

$(VENV)/.docs: $(VENV)/.base
	$(PIP) install --constraint constraints.txt --editable ".[docs,nlp,models,pandas]"
	@touch $@

clean:
	rm -rf $(VENV) $(OUT) docs/_build build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
