# Two commands are enough on a machine with Python 3.11 or 3.12: `make demo` and `make test`.
PYTHON ?= python3
BIN := $(CURDIR)/.venv/bin
export PATH := $(BIN):$(PATH)
export APE_DATA_FOLDER := $(CURDIR)/.ape
export VIRTUAL_ENV := $(CURDIR)/.venv
# The machine's own certificates, as its other tools use them.
export UV_SYSTEM_CERTS := true
# A proxy for the outside must not get what is for this machine.
export NO_PROXY := localhost,127.0.0.1,$(NO_PROXY)
unexport PYTHONHOME

# make help lists these.
.PHONY: help setup demo demo-stop test test-contracts test-product coverage-contracts mutate-contracts sim nightly lint format lock docs artifacts clean
.DEFAULT_GOAL := help

help: ## Say what there is to do
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 18

.venv/bin/uv: requirements/bootstrap.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' \
	  || { echo "Counterfoil needs Python 3.11 or 3.12; say which with: make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	@touch $@

.venv/python.stamp: .venv/bin/uv requirements/dev.txt pyproject.toml
	$(BIN)/uv pip install --quiet --require-hashes -r requirements/dev.txt
	$(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

.venv/anvil.stamp: .venv/python.stamp package-lock.json requirements/node.txt
	@v=$$(node --version 2>/dev/null | sed -E 's/v([0-9]+).*/\1/'); \
	  if [ "$${v:-0}" -lt 20 ] || ! command -v npm >/dev/null; then \
	    $(BIN)/uv pip install --quiet --require-hashes -r requirements/node.txt; fi
	$(BIN)/python scripts/install_anvil.py
	@touch $@

setup: .venv/anvil.stamp ## Install everything into this checkout

lock: setup ## Resolve the dependencies again, with hashes
	for f in bootstrap node; do $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header requirements/$$f.in -o requirements/$$f.txt; done
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-emit-find-links --no-header --extra dev pyproject.toml -o requirements/dev.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-emit-find-links --no-header -c requirements/dev.txt pyproject.toml -o requirements/runtime.txt

docs: .venv/python.stamp ## Write docs/configuration.md and docs/http.md after a change of settings or endpoints
	$(BIN)/python -m scripts.document_settings
	$(BIN)/python -m scripts.document_http

artifacts: .venv/python.stamp ## Export interfaces, ABIs and bytecode after a change of the contracts
	$(BIN)/python scripts/export_abi.py

test: test-contracts test-product ## Run the whole suite

# In a process of their own: Ape changes how eth-abi decodes, and the product runs without Ape.
TOGETHER := --numprocesses 2 --dist loadgroup
CONTRACT_TESTS := tests/contracts tests/source_rules tests/mutation tests/benchmarks

test-contracts: setup ## Run the tests of the contracts
	$(BIN)/python -m pytest $(TOGETHER) $(CONTRACT_TESTS)

test-product: setup ## Run the tests of indexer, agent, node, audit, CLI, API and demo
	$(BIN)/python -m pytest $(TOGETHER) $(CONTRACT_TESTS:%=--ignore=%)

coverage-contracts: setup ## Statements and branches of every contract that the boa tests run
	$(BIN)/python -m pytest -q -p tests.contracts.coverage.plugin tests/contracts/coverage tests/contracts/stateful

mutate-contracts: setup ## Break the contracts on purpose, and see whether the tests notice; resumes where it stopped
	$(BIN)/python -m tests.mutation

sim: setup ## Every fault against the real index, kills of agents and nodes; SIM="--seeds 1 --kills 50 --lives 20" for less
	$(BIN)/python -m tests.sim $(SIM)

nightly: setup ## The stateful test of the contracts with its largest budget and a new seed
	COUNTERFOIL_PROFILE=nightly $(BIN)/python -m pytest -q -rP tests/contracts/stateful/test_suite.py

# Of natrix's rules these are off: frame size (the lens reads 1,024 listings), naming of constants (ERC-20 names its own) and
# arguments (ours have no underscore), and two mutability rules that do not know extcall, chain.id and self.
lint: setup ## Style, types, layers and contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/natrix lint contracts --disable NTX1 NTX2 NTX4 NTX5 NTX11

format: setup ## Format the Python sources
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

demo: setup ## Run the whole story on a local chain; KEEP=1 leaves chain and API up, SESSIONS=60 sets its length
	@$(BIN)/python -m counterfoil.demo --sessions $(or $(SESSIONS),60) $(if $(KEEP),--keep)

demo-stop: setup ## End what `make demo KEEP=1` left running
	@$(BIN)/python -m counterfoil.demo --stop

clean: ## Remove what was installed, and the demo; your own .counterfoil folder stays
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m counterfoil.demo --stop; fi
	rm -rf .venv .ape .build .cache .counterfoil/demo .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache \
	  node_modules
