# Every target sets up what it needs and is quick the second time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Many tests wait for proxies: with one worker more than there are processors, others run meanwhile.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# What `make soak` runs.
SOAK ?= generated fuzz spire authorino kuadrant istio expressions netpol dist

# Tests start hundreds of commands: each would compile its modules anew where the environment forbids writing them.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test tables quick mutants soak generated fuzz spire apiserver authorino kuadrant istio expressions netpol bench lint fmt docs site dist clean

$(READY): pyproject.toml src/eastgate/_version.py
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing eastgate and its tools into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[mesh,dev,bench,docs]'
	@touch $@

demo: $(READY)  ## a tour of a small shop and one of agents and their tools, through real Envoys: calls, verdicts, changes while it runs
	@$(BIN)/python examples/shop/tour.py
	@echo
	@$(BIN)/python examples/agents/tour.py

test: $(READY)  ## everything that CI runs; programs that are built from source are built meanwhile, for the tests at the end
	@$(BIN)/python -m tests.programs & builder=$$!; trap "kill $$builder 2>/dev/null" EXIT; \
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint tables && \
	$(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report=

tables: $(READY)  ## the decision tables of the conformance suites and of the examples
	@$(BIN)/eastgate test conformance examples

quick: $(READY)  ## the inner loop: decision tables and the tests that start no process, with few examples each
	@$(BIN)/python -m pytest --quick -n auto

lint: $(READY)  ## style, types, layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

fmt: $(READY)  ## put the code into the one style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

mutants: $(READY)  ## small errors in the code that decides, one at a time: which does no test notice? MUTANTS_ARGS="engine --sample 300"
	@$(BIN)/python -m tests.mutants $(or $(MUTANTS_ARGS),engine)

soak:  ## what takes too long for `make test`: generated tests in full, `make fuzz`, and programs of others; SOAK="generated istio"
	@$(MAKE) --no-print-directory --keep-going $(SOAK)

generated: $(READY)  ## generated tests with new examples, ten times as many as they ask for; GENERATED_ARGS="tests/convert"
	@$(BIN)/python -m pytest --soak 10 -n $(WORKERS) $(GENERATED_ARGS)

fuzz: $(READY)  ## look for differences between the engine and real Envoys; FUZZ_ARGS="--seconds 600 --seed 1"
	@$(BIN)/python -m tests.differential $(FUZZ_ARGS)

spire: $(READY)  ## the Workload API of a real SPIRE, which is built first; needs go and gcc
	@$(BIN)/python -m pytest -m spire tests/control/identity

apiserver: $(READY)  ## only what needs a real Kubernetes API server; `make test` runs it too
	@$(BIN)/python -m pytest -m apiserver -n $(WORKERS) tests

authorino: $(READY)  ## every AuthPolicy and AuthConfig row, what is converted, and AuthConfigs of its documentation, on a real Authorino, built first; needs go
	@$(BIN)/python -m tests.authorino

kuadrant: $(READY)  ## effective AuthPolicies and their status on generated clusters, beside kuadrant-operator's own code, built first; needs go
	@$(BIN)/python -m pytest -m kuadrant tests/kuadrant

istio: $(READY)  ## every Istio row and generated policies, asked of istiod's own code and real Envoys, built first; needs go
	@$(BIN)/python -m tests.istio

expressions: $(READY)  ## selectors, CEL and Rego beside Authorino's own (OPA, cel-go, gjson), built first; needs go
	@$(BIN)/python -m pytest -m expressions tests/expressions

netpol: $(READY)  ## network policies beside np-guard's netpol-analyzer, which is built first; needs go
	@$(BIN)/python -m pytest -m netpol tests/netpol

bench: $(READY)  ## against real peers, in one run; BENCH_ARGS=--quick for a short one
	@$(BIN)/python -m bench $(BENCH_ARGS)

docs: $(READY)  ## draw the pictures of the documentation
	@$(BIN)/python docs/pictures.py

site: $(READY)  ## build the documentation site into build/site/html; a broken link or anchor fails
	@$(BIN)/python docs/website.py

dist: $(READY)  ## what a release consists of: wheel, source distribution, a single file, its SBOM, checksums; tried at the end
	@$(BIN)/python deploy/dist.py dist

clean:
	rm -rf dist $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
