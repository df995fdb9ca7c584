# Everything a fresh machine needs: `make demo` to see it work, `make test` to check it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
JOBS   ?= 2

# One thread per worker: two workers with two threads each are slower than one.
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1

.PHONY: demo test lint types unit format bench-core bench-adaptation bench-continual \
	bench-data bench-user bench-page bench-runner bench-faults fuzz docs site dist \
	test-lowest test-wheel setup clean

demo: setup
	@$(BIN)/vnt demo

test: lint types unit site dist

lint: setup
	@echo "== lint"
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

types: setup
	@echo "== types"
	@$(BIN)/mypy

unit: setup
	@echo "== tests"
	@$(BIN)/pytest -n $(JOBS)

format: setup
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench-core: setup
	@$(BIN)/python -m pip install -q -c constraints.txt -e './lab[bench]'
	@OMP_NUM_THREADS=2 MKL_NUM_THREADS=2 $(BIN)/python benchmarks/core.py

bench-adaptation: setup
	@OMP_NUM_THREADS=2 MKL_NUM_THREADS=2 $(BIN)/python benchmarks/adaptation.py

bench-runner: setup
	@$(BIN)/python benchmarks/runner.py

bench-faults: setup
	@$(BIN)/python benchmarks/faults.py --kills 30

# A finding is saved in tests/findings, where a test replays it.
fuzz: setup
	@$(BIN)/python benchmarks/fuzz.py

bench-page: setup
	@$(BIN)/python benchmarks/page.py

bench-continual: setup
	@$(BIN)/python benchmarks/continual.py

# Beside an older commit: make bench-user BEFORE=COMMIT
BEFORE ?= 4e28e6e
bench-user: setup
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/user.py --before $(BEFORE)

bench-data: setup
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/data_loading.py

# The fast tests with the lowest declared versions, in a separate environment.
LOWEST := .venv-lowest
test-lowest:
	@$(PYTHON) -m venv --clear $(LOWEST)
	@$(LOWEST)/bin/python -m pip install --quiet -c constraints-lowest.txt -e '.[all]' \
		hypothesis mpmath polars pytest pytest-xdist selenium
	@$(LOWEST)/bin/pytest -n $(JOBS) -c pyproject.toml tests/divergences tests/theory tests/relations \
		tests/pages tests/tables tests/workflows tests/cli tests/continual tests/test_*.py

# The library's wheel in an empty environment without the laboratory, with the README's commands.
test-wheel: setup
	@$(BIN)/python tools/try_wheel.py

docs: setup
	@$(BIN)/python tools/make_api.py
	@$(BIN)/python tools/make_architecture.py
	@$(BIN)/python tools/make_figures.py
	@$(BIN)/python tools/make_evidence.py
	@$(BIN)/python tools/make_tables.py
	@$(BIN)/python tools/make_paper_page.py

# The docs as a site that can be read without a network: open site/index.html. (The variable only
# silences an advertisement of the theme; --quiet would hide warnings from --strict.)
site: setup
	@echo "== site"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@$(BIN)/python tools/check_site.py site

# Wheel and sdist of both distributions, built and checked. `make dist OUT=dist` keeps them.
OUT ?=
dist: setup
	@echo "== distributions"
	@$(BIN)/python tools/check_dist.py $(OUT)

# An environment that cannot run (half made, Python gone) or was made elsewhere (folder moved) is
# replaced; an interrupted install is repeated.
setup:
	@if [ -d $(VENV) ] && ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
		echo "== $(VENV) cannot run: creating it again"; rm -rf $(VENV); fi
	@if [ -f $(READY) ] && [ "$$(cat $(READY))" != "$(CURDIR)" ]; then \
		echo "== $(VENV) was made for another folder: creating it again"; rm -rf $(VENV); fi
	@$(MAKE) -s --no-print-directory $(READY)

$(READY): pyproject.toml lab/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("vntransfer needs Python >= 3.11, found " + sys.version.split()[0] + ": run make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else None'
	@[ -x $(BIN)/python ] || { echo "== creating $(VENV) with $$($(PYTHON) --version)"; $(PYTHON) -m venv $(VENV); }
	@echo "== installing vntransfer and its tools into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]' -e './lab[dev]'
	@echo "$(CURDIR)" > $@

clean:
	rm -rf $(VENV) $(LOWEST) site .mypy_cache .pytest_cache .ruff_cache .hypothesis
