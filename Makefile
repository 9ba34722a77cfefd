# Two commands are enough on a fresh machine with Python >= 3.11: `make demo` and `make test`. Both install into .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-full fuzz fuzz-grad check docs stablehlo-status autodiff-status bench bench-status bench-peers clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat -e '.[demo]'
	touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat -e '.[test]'
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat -e '.[dev]'
	touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat -e '.[docs]'
	touch $@

demo: $(VENV)/.demo            ## train an MLP and a CNN on handwritten digits; results in build/
	$(BIN)/python examples/digits/train.py

test: $(VENV)/.test            ## the fixed sample of the test suite, with line coverage
	$(BIN)/python -m pytest -n 2 --cov=gradir --cov-report=term:skip-covered -m 'not full'

test-full: $(VENV)/.test       ## every test
	$(BIN)/python -m pytest -n 2

fuzz: $(VENV)/.test            ## random programs and damaged IR for SECONDS=600 from SEED=...; finds go to build/fuzz
	$(BIN)/python -m gradir.tools.fuzz --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED))

fuzz-grad: $(VENV)/.test       ## derivatives of random programs with control flow for SECONDS=600 from SEED=...; finds go to build/fuzz
	$(BIN)/python -m gradir.tools.fuzz --gradients --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED))

check: $(VENV)/.dev            ## lint, types, layers, facets, error codes
	$(BIN)/ruff check gradir tests examples bench
	$(BIN)/ruff format --check gradir tests examples bench
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/python -m pytest -q tests/test_layers.py tests/test_codes.py tests/dialects/test_facets.py

docs: $(VENV)/.docs            ## the manual, in site/
	$(BIN)/mkdocs build --strict

stablehlo-status: $(VENV)/.test ## docs/status/stablehlo.md from StableHLO's test data, in ../shared/suites or $$GRADIR_SUITES
	$(BIN)/python -m gradir.tools.stablehlo_status

autodiff-status: $(VENV)/.test  ## docs/status/autodiff.md: derivatives of every op against differences and JAX, which has to be installed
	$(BIN)/python -m tests.autodiff.table

bench: $(VENV)/.demo           ## the table against numpy and whatever peers are installed
	$(BIN)/python -m bench

BENCH = $(BIN)/python -m bench
STARTED = overhead_add8,gemm_512,softmax*,conv3x3_b1,attention*,*_train,digits*,lstm_grad
LOADED = gemm_512,chain_1e6,softmax*,mlp_train,resnet_infer,block_train,lstm_forward

bench-status: $(VENV)/.demo    ## docs/status/performance.md and bench.md: everything that is measured, in about half an hour on a quiet machine
	$(BENCH) --memory --json bench/data/threads1.json
	$(BENCH) --starts --workloads '$(STARTED)' --json bench/data/threads1.json
	$(BENCH) --starts --systems gradir --json bench/data/threads1.json
	$(BENCH) --threads 2 --json bench/data/threads2.json
	$(BENCH) --threads 2 --burners 2 --caches --workloads '$(LOADED)' --json bench/data/loaded.json
	$(BENCH).sweep --json bench/data/limits.json
	$(BENCH).performance

bench-peers:                   ## install the peers, each into its own venv under build/peers
	$(PYTHON) bench/peers.py install

clean:
	rm -rf $(VENV) build site .pytest_cache .ruff_cache .hypothesis .coverage*
