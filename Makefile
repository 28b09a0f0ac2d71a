# Everything happens in .venv, beside this file; nothing else on the machine is touched.
# Another Python:  make demo PYTHON=python3.12

PYTHON ?= python3
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := .venv/bin
# A user's own setting would make pip refuse, or install outside .venv.
export PIP_USER := 0
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo install test test-system lint format environment web docs tutorials wheel \
  wheel-check bench bench-check mutants clean

help:
	@echo "make demo         set up .venv, run the whole story on built-in data, name the report"
	@echo "make test         set up .venv with all tools, then lint, types, tests and doctests"
	@echo "make install      set up .venv and put privet into ~/.local/bin"
	@echo "make test-system  tests with a browser, PostgreSQL, a Ray cluster and an S3 server"
	@echo "                  (make web first, or the browser's are skipped)"
	@echo "make lint         ruff, mypy, import-linter and the tables of docs"
	@echo "make format       let ruff put the code in shape"
	@echo "make docs         build the site with the API reference in out/site; a broken link fails"
	@echo "make tutorials    run the notebooks in docs/tutorials"
	@echo "make web          build the exchange's pages into the package (needs npm)"
	@echo "make wheel        build a wheel with these pages in dist"
	@echo "make wheel-check  install it into empty environments; run demo, serve, share, apply there"
	@echo "make bench        how fast Privet is, as ratios to named references; writes out/bench.json"
	@echo "make bench-check  the same, and fail where a ratio is 1.5 times benchmarks/ratios.json's"
	@echo "make mutants      do the tests of evidence notice 400 small mistakes? 15 minutes"
	@echo "make clean        remove .venv, what was built, and the caches"

demo: .venv/.installed
	@echo "== privet demo"
	@$(BIN)/privet demo

install: .venv/.installed
	@mkdir -p $(HOME)/.local/bin
	@ln -sf $(CURDIR)/$(BIN)/privet $(HOME)/.local/bin/privet
	@echo "The command is in ~/.local/bin; if your shell does not find it, add that folder to PATH"

test: lint
	@echo "== pytest: tests and the examples in docstrings, two at a time"
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadscope -m "not system"

# What is not on the machine is skipped, and pytest says so.
test-system: .venv/.installed-dev
	@echo "== pytest: tests that start a browser, a database, a cluster or an object store"
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadscope -m system -rs tests

lint: .venv/.installed-dev
	@echo "== ruff check"
	@$(BIN)/ruff check
	@echo "== ruff format --check"
	@$(BIN)/ruff format --check
	@echo "== mypy"
	@$(BIN)/mypy
	@echo "== import-linter: rooms import downwards only, no cycles"
	@PYTHONPATH=src $(BIN)/lint-imports --no-logo
	@echo "== tables of docs against benchmarks/results"
	@$(BIN)/python benchmarks/tables.py --check
	@echo "== lines of docs end at 100 columns"
	@$(BIN)/python -m pytest -q -n 0 tests/test_docs_lines.py

bench: .venv/.installed
	@mkdir -p out
	@OMP_NUM_THREADS=1 $(BIN)/privet bench --turns 7 --out out/bench.json

# Ratios of two things that took turns in this run, never times: those depend on the machine. One
# thread, because threads that wait for each other burn processor time on a busy machine.
bench-check: .venv/.installed
	@echo "== privet bench: is anything slower by accident?"
	@OMP_NUM_THREADS=1 $(BIN)/privet bench --turns 3 --check benchmarks/ratios.json

# On one core, not in CI. The score is in docs/architecture.md.
mutants: .venv/.installed-dev
	@mkdir -p out
	@$(BIN)/python benchmarks/mutants.py --show > out/mutants.json
	@cat out/mutants.json

format: .venv/.installed-dev
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

environment: .venv/.installed-dev

web: web/node_modules/.installed .venv/.installed
	@$(BIN)/python web/build.py

# Notebooks are small; each is run whole, in a process of its own.
tutorials: .venv/.installed-dev
	@echo "== Running the tutorials"
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --nbmake --nbmake-timeout=600 docs/tutorials

docs: .venv/.installed-dev
	@echo "== mkdocs: the site, in out/site"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The date in the wheel is the commit's, so that one commit gives one wheel.
wheel: web
	@echo "== Building the wheel"
	@rm -rf build dist
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || date +%s) \
	  $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls -l dist

wheel-check: wheel
	@$(BIN)/python .ci/check_wheel.py dist/*.whl

web/node_modules/.installed: web/package.json
	@echo "== Fetching onnxruntime-web and libsodium"
	@cd web && npm install --silent --ignore-scripts --no-package-lock --no-audit --no-fund
	@touch $@

# The stamps say when pyproject.toml was last installed; while it is unchanged nothing is installed
# again.
.venv/.installed: pyproject.toml
	$(call venv)
	@echo "== Installing Privet into .venv (the first time this downloads PyTorch and takes minutes)"
	@$(BIN)/python -m pip install --quiet --editable '.[learn]'
	@touch $@

.venv/.installed-dev: pyproject.toml
	$(call venv)
	@echo "== Installing Privet and its development tools into .venv"
	@echo "   (the first time this downloads PyTorch and takes minutes)"
	@$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch .venv/.installed $@

define venv
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "Privet needs Python 3.11 or newer, and '$(PYTHON)' is not: name another one with" \
	    " make PYTHON=/path/to/python"; exit 1; }
	@echo "== Making .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv \
	  || { echo "Python could not make a virtual environment: on Debian and Ubuntu install the" \
	    "package python3-venv."; exit 1; }
endef

clean:
	@echo "== Removing .venv and the caches"
	@rm -rf .venv build dist out/site src/privet.egg-info src/privet/exchange/pages web/node_modules
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
