# Everything runs in .venv, which the first command makes; nothing has to be installed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ttlstore needs Python 3.11 or later: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --group dev --editable .
	touch $@

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

.PHONY: demo
demo: $(READY) ## a guided tour: documents that expire before your eyes
	@$(BIN)/ttlstore demo

.PHONY: lint
lint: $(READY) ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.PHONY: test
test: lint ## lint, types and all tests, with coverage
	$(BIN)/pytest --numprocesses=auto --cov --cov-report=term:skip-covered --cov-fail-under=90

MINUTES ?= 5
.PHONY: soak
soak: $(READY) ## everything that can go wrong, for MINUTES=5; writes docs/reliability.md
	$(BIN)/python -m tests.faults --minutes $(MINUTES) --report docs/reliability.md

.PHONY: docs
docs: $(READY) ## record what the commands in the docs print
	$(BIN)/python -m tests.cli.tour

.PHONY: grammar
grammar: $(READY) ## after a change of grammar.lark: what the parser goes by
	$(BIN)/python -m ttlstore.query.from_lark

$(VENV)/.bench: $(READY)
	$(BIN)/pip install --quiet --group bench
	touch $@

.PHONY: bench
bench: $(VENV)/.bench ## every promise about speed, and the store beside what could be used instead
	$(BIN)/python -m benchmarks
	$(MAKE) bench-page

RECORDS := docs/benchmarks
.PHONY: bench-page
bench-page: $(VENV)/.bench ## beside what could be used instead, in some 40 minutes; writes docs/benchmarks.md
	$(BIN)/python -m benchmarks peers --big-size 10000000 --output $(RECORDS)/normal.json
	$(BIN)/python -m benchmarks peers --durability full --size 10000 --size 100000 --rounds 3 --shared-size 0 \
		--expiring 0 --output $(RECORDS)/full.json
	$(BIN)/python -m benchmarks page --record $(RECORDS)/normal.json --record $(RECORDS)/full.json docs/benchmarks.md

.PHONY: bench-quick
bench-quick: $(VENV)/.bench ## the short form, under two minutes
	$(BIN)/python -m benchmarks peers --size 10000 --rounds 3 --budget 2 --load-budget 100 --shared-size 0 --expiring 0

.PHONY: clean
clean: ## remove what the other commands made
	rm -rf $(VENV) dist build .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
