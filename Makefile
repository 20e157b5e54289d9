# Penstock's commands; `make` alone lists them. Everything they make lies in .venv/ and .local/.

SYSTEM_PYTHON := $(firstword $(wildcard $(addsuffix /python3.11,$(subst :, ,$(PATH)))) python3)
PYTHON ?= $(SYSTEM_PYTHON)
BIN := .venv/bin
PY := $(BIN)/python
INSTALLED := .venv/requirements.installed
# Processes that share the tests, a file at a time: each has servers and a Spark of its own, and often waits for them.
WORKERS ?= 3
PYTEST := $(PY) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder  # in the order of tests/order.py
HELPERS := tests/conftest.py $(shell find tests -name '*.py' ! -name 'test_*' ! -name conftest.py)
OURS := plugins/penstock plugins/penstock_plugin.py spark_apps/penstock_spark dags docs/examples stack demo torture bench \
  $(HELPERS)

.DEFAULT_GOAL := help
.PHONY: help setup venv demo up down status test-unit test test-all test-health first-hour cluster-test bench torture house mutants lint lock clean

# What the shell of the caller may have set stays outside; what a bare machine lacks is made up.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PYTHONPATH := $(CURDIR)/plugins:$(CURDIR)
export NUMBA_CACHE_DIR := $(CURDIR)/.local/numba
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONHOME VIRTUAL_ENV AIRFLOW_HOME SPARK_HOME
ifeq ($(strip $(HOME)),)
export HOME := $(CURDIR)/.local/home
endif

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: venv ## Install everything into .venv/ and .local/, once
	@$(PY) -m stack setup

demo: setup ## Run the whole job on a live workload, compare lake and source, stop again
	@$(PY) -m demo

up: setup ## Start the local stack with the demo's workload and leave it running; again: go on where it stopped
	@$(PY) -m demo up

down: ## Stop whatever `make up`, `make demo` or `make cluster-test` left running
	@if [ -x $(PY) ]; then $(PY) -m stack down; else echo "Nothing is installed, so nothing runs."; fi

status: venv ## Show the UI's address and login, what runs, and how the pipelines are
	@$(PY) -m stack status

test-unit: venv ## Run the tests that need no server and no JVM: seconds
	@$(PY) -m pytest -q -n $(WORKERS) -m "unit and not slow"

test: lint setup ## Check style, types and layers, and run the tests but the slow ones
	@$(PYTEST)

test-all: lint setup ## Run all tests, the slow ones too
	@$(PYTEST) -m ""

test-health: setup ## Run the tests of slot health, those on other versions of PostgreSQL too
	@$(PY) -m tests.postgres_versions
	@$(PY) -m pytest -m "" tests/flow/health tests/dags/test_runs.py -k "health or does_not_take"

first-hour: setup ## Do what docs/getting-started.md says in a fresh clone, beside two busy loops, and time it
	@$(PY) -m demo.first_hour

cluster-test: setup ## Run the demo's job on Spark standalone and an S3 store, compare, stop again
	@$(PY) -m demo cluster

# make bench PARTS="merge cluster_merge"; the latter takes minutes and starts Spark standalone and an S3 server.
bench: setup ## Measure speed, memory and cost as ratios against the server's own limit; PARTS= chooses
	@$(PY) -m bench $(PARTS)

# make torture MINUTES=120; what a run found is repeated by its SEED.
MINUTES ?= 20
torture: setup ## Change and break a pipeline at random for MINUTES=20, compare each round; SEED= repeats
	@$(PY) -m torture --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

house: venv ## Show each room of the library: files, lines and docstrings beside its budget
	@$(PY) -m tests.house

# make mutants ROOMS="engine values" COUNT=60; a run that was stopped goes on when its SEED is given again.
mutants: setup ## Change the library at random in 200 places, and show what its own tests do not notice
	@$(PY) -m tests.mutants $(if $(ROOMS),--rooms $(ROOMS)) $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED))

lint: venv ## Check style, types and layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy $(OURS)
	@$(BIN)/lint-imports

# One lock serves x86-64 and aarch64: its hashes are those of every platform's files.
LOCK := $(BIN)/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-header --no-emit-index-url
lock: venv ## Pin the dependencies: all in requirements.txt, those of a deployment in requirements-runtime.txt
	@$(LOCK) requirements.in -o requirements.txt
	@$(LOCK) --constraint requirements.txt requirements-runtime.in -o requirements-runtime.txt
	@echo uv | $(LOCK) - -o stack/uv.txt

clean: down ## Stop everything and delete all that was generated, the demo's data included
	@if [ -x $(PY) ]; then $(PY) -m stack clean; fi
	rm -rf .local .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# The packages, installed when the lock's content changed. uv makes it quick; where it can't (not to be had, or a
# network that only pip is set up for), pip does the same.
venv: $(INSTALLED)

$(INSTALLED): requirements.txt | $(PY)
	@mkdir -p "$$HOME"
	@if cmp -s requirements.txt $@; then touch $@; else \
	  echo "Installing the packages of requirements.txt (once, a few minutes)"; \
	  { $(PY) -m pip install --quiet --require-hashes -r stack/uv.txt \
	    && $(BIN)/uv pip sync --system-certs --python $(PY) --quiet --require-hashes requirements.txt; } \
	  || { echo "uv did not succeed; pip does it, more slowly"; \
	    $(PY) -m pip install --quiet --use-pep517 --require-hashes -r requirements.txt; } \
	  && cp requirements.txt $@; \
	fi

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null || { \
	  echo "Expected Python 3.11. Came: $$($(PYTHON) --version 2>&1). Next: install it, or make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv --clear .venv || { \
	  echo "Next: install the venv module of Python 3.11 (Debian: apt-get install python3.11-venv)" >&2; rm -rf .venv; exit 1; }
