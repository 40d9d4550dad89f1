# Everything starts here; `make help` lists it. Each target does its own set-up, once, in $(VENV).
# Options: ARGS="..." for the command behind a target, PYTHON=python3.12, VENV=.venv312, NBFLAGS="slow cuda".

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
TESTS ?=
# the chapters of the model
MODEL := $(wildcard nbs/1_model/[2-8]_*.ipynb)
BIN := $(VENV)/bin
# what says that make made $(VENV), and may remove it
MARK := $(VENV)/.made-by-make
# setuptools warns of every editable install
PIP := PYTHONWARNINGS=ignore "$(BIN)/python" -m pip --disable-pip-version-check -q
PINS := settings.ini setup.py constraints.txt

.DEFAULT_GOAL := help
.PHONY: help copy-task lint check test site long gpu docs notebooks lab core dev hooks clean distclean

# make splits names at blanks: the folder it made or removed would not be the one that was meant.
ifneq "$(words $(VENV))" "1"
$(error VENV="$(VENV)" is not one word: nothing was done)
endif

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

copy-task: $(VENV)/.core ## train a Transformer to copy, and see it copy exactly (ARGS="--help" lists its options)
	"$(BIN)/annotated-transformer" copy-task $(ARGS)

# A file goes to one worker, so that its fixtures are made once. Each notebook counts as a file, and they come first.
PYTEST = "$(BIN)/python" -m pytest -n auto --dist loadfile --no-loadscope-reorder

lint: $(VENV)/.dev ## what ruff says of the code and its format
	"$(BIN)/ruff" check
	"$(BIN)/ruff" format --check

check: lint ## lint, exported modules, fast tests and the chapters of the model, in about a minute
	$(PYTEST) -q -m "not slow and not long and not site" $(MODEL) tests $(ARGS)

test: $(VENV)/.dev ## run the notebooks and tests/ without the next two (TESTS=nbs/1_model/2_attention.ipynb for one, NBFLAGS=slow for slow cells too)
	$(PYTEST) -v --durations=10 $(or $(TESTS),-m "not long and not site" nbs tests) $(ARGS)

site: $(VENV)/.dev ## build the site into docs/_build/html, and try it in a browser (needs npm and Chromium)
	$(PYTEST) -v --durations=10 -m site tests $(ARGS)

long: $(VENV)/.dev ## run the chapters that train for minutes, and the tests that take as long
	$(PYTEST) -v --durations=10 -m long nbs tests $(ARGS)

# No set-up: a machine with a GPU has its own PyTorch, and perhaps no network.
gpu: ## measure on a GPU all that is owed, in nine minutes; call it again to go on (ARGS=--list, ARGS=--rehearse)
	"$(or $(wildcard $(BIN)/python),$(PYTHON))" benchmarks/support/gpu.py $(ARGS)

docs: $(VENV)/.dev ## build the site into docs/_build/html, and no more
	"$(BIN)/python" docs/fetch_mathjax.py
	"$(BIN)/sphinx-build" -W --keep-going -q -b html -c docs nbs docs/_build/html
	@echo "The site is at docs/_build/html/index.html"

notebooks: $(VENV)/.dev ## export the library, run the notebooks and save their outputs (ARGS="nbs/1_model/2_attention.ipynb" for some)
	"$(BIN)/nbdev_export"
	"$(BIN)/python" tools/run_notebooks.py $(ARGS)
	"$(BIN)/nbdev_clean"

lab: $(VENV)/.dev ## open the notebooks in JupyterLab
	"$(BIN)/jupyter" lab nbs $(ARGS)

core: $(VENV)/.core ## install the library and nothing else
dev: $(VENV)/.dev ## install the library and all tools

hooks: $(VENV)/.dev ## let git clean notebooks before a commit, and merge them by cells
	"$(BIN)/python" tools/git_hooks.py install

clean: ## remove what the other targets made, but not the installed tools
	rm -rf docs/_build build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find annotated_transformer nbs docs tests -name __pycache__ -prune -exec rm -rf {} +

distclean: clean ## remove the installed tools too, if make installed them
	@if [ -f "$(MARK)" ]; then rm -rf "$(VENV)"; \
	  elif [ -e "$(VENV)" ]; then echo "$(VENV) is not removed: without $(MARK) nothing says that make made it. If it is to go, remove it yourself." >&2; fi

# A stamp is younger than the pins it was installed from, so a changed pin installs again, and an unchanged one never does.
# A folder that was there before is never marked, so it is never removed.
$(BIN)/python:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "make needs Python 3.10 or newer, and $(PYTHON) is not: try make PYTHON=/path/to/python3" >&2; exit 1; }
	@if [ ! -e "$(VENV)" ]; then mkdir -p "$(VENV)" && : > "$(MARK)"; fi
	@"$(PYTHON)" -m venv "$(VENV)" || { \
	  if [ -f "$(MARK)" ]; then rm -rf "$(VENV)"; else echo "$(VENV) is left as it is: it was there before" >&2; fi; \
	  echo "$(PYTHON) cannot make virtual environments: install its venv module (Debian: apt-get install python3-venv)" >&2; exit 1; }

# pip and setuptools come first and from the pins too; then nothing has to be fetched to build the library itself.
$(VENV)/.core: $(PINS) | $(BIN)/python
	$(PIP) install -c constraints.txt pip setuptools wheel
	$(PIP) install -c constraints.txt --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	@"$(BIN)/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "the development tools need Python 3.11 or newer: make distclean, then make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PIP) install -c constraints.txt --no-build-isolation -e '.[dev,docs]'
	@touch $@
