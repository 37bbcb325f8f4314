# Every command works on a fresh machine: the virtual environment is created on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SPARK := $(VENV)/.spark

# With CI=true exactly what these list is installed, by version and hash.
PINNED := .ci/requirements.txt
PINNED_SPARK := .ci/requirements-spark.txt

# Tests, demo and proof start hundreds of processes: where bytecode is not kept, each of them would
# compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup quick spark demo demo-brokers test proof acceptance sanitize check bench interop interop-brokers generate sim nemesis
.PHONY: compat docs dist sbom pins vulnerabilities

setup: $(STAMP)

$(STAMP): pyproject.toml hatch_build.py $(wildcard kraftwire/engine/*.[ch]) $(PINNED)
	$(PYTHON) -m venv $(VENV)
ifeq ($(CI),true)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement $(PINNED)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
else
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[codegen,dev,interop]'
endif
	$(BIN)/python -m compileall -q kraftwire
	@if $(BIN)/kraftwire --version | grep -qx "engine: C"; then echo "engine: C"; \
	  else echo "engine: Python (no C compiler or no Python headers; everything works without)"; fi
	touch $@

# Spark's extra, about 450 MB: for the pipeline; needs Java 17 or later.
spark: $(SPARK)
	@:

ifeq ($(CI),true)
SPARK_FROM := --require-hashes --requirement $(PINNED_SPARK)
else
SPARK_FROM := --editable '.[spark]'
endif

$(SPARK): $(STAMP) $(PINNED_SPARK)
	@if java -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])'; then \
	  echo "installing Spark's extra (about 450 MB)"; \
	  $(BIN)/python -m pip install --quiet $(SPARK_FROM) && touch $@; \
	else \
	  echo "no Java 17: the pipeline on Spark is left out"; \
	fi

demo: setup
	@$(BIN)/python -m tools.demo
	@$(MAKE) --no-print-directory spark
	@$(BIN)/python -m tools.demo_report

# Real brokers on a control plane in Python, half a minute: needs Java 17; Maven fetches Kafka at first use.
demo-brokers: setup
	@$(BIN)/python -m tools.demo_brokers

# What to run while you work: style, types, and the fast tests. About a minute on two processors, once
# mypy has a cache. The first run also sets up, and lets mypy read everything.
quick: setup check
	$(BIN)/python -m pytest -m "not slow" --numprocesses 2 --dist worksteal

# All tests but the longest cases, by four processes: tests with real Kafka mostly wait, so two processors
# are busy with them. Who begins with what is in tests/support/suite/shifts.py; the many short unit tests come last.
test: setup check spark
	$(BIN)/python -m tools.twice -m "not full" --numprocesses 4 --dist loadfile --no-loadscope-reorder \
	  --ignore tests/spark/cluster --ignore tests/spark/killed \
	  --ignore tests/interop/test_mixed_traffic.py

# What is searched rather than tested: simulation, the random walk, the exhaustive search, crash
# images, real quorums under faults, also under clients, Spark that is killed, some of the mutants, and
# some of the tests that are too long for `make test`.
# Each part gets its share of PROOF_SECONDS.
PROOF_SECONDS ?= 1500
PROOF_SEEDS ?= 0-9999
proof: setup spark
	$(BIN)/python -m tools.proof --seconds $(PROOF_SECONDS) --seeds $(PROOF_SEEDS)

# Everything with full counts, for a release: hours. Every test, also those that `make test` leaves to
# the searches; the searches, with time for all of them; every mutant; brokers and controllers that
# fail under producers; other clients' tests; a million cases for the sanitized engine; the floors of
# the benchmarks, last. The first part that fails ends it.
ACCEPTANCE_SECONDS ?= 14400
acceptance: setup check spark
	$(BIN)/python -m tools.twice --numprocesses 4 --dist loadfile --no-loadscope-reorder
	$(BIN)/python -m tools.proof --seconds $(ACCEPTANCE_SECONDS) --seeds 0-99999
	$(BIN)/python -m tests.mutants --all
	$(BIN)/python -m tests.failures
	$(MAKE) --no-print-directory compat
	$(MAKE) --no-print-directory sanitize
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python -m tests.bench --strict

# The engine in C, built with all warnings as errors and with the sanitizers of address and undefined
# behaviour, compared with Python on random messages and batches.
SANITIZE_CASES ?= 1000000
sanitize: setup
	$(BIN)/python -m tools.sanitize --cases $(SANITIZE_CASES)

check: setup
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python -m tests.bench

interop: setup
	$(BIN)/python -m pip install --quiet --editable '.[interop]'
	$(BIN)/python -m tests.interop.clients

# The same clients on two real brokers, with controllers of ours and with Kafka's.
interop-brokers: setup
	$(BIN)/python -m pip install --quiet --editable '.[interop]'
	$(BIN)/python -m tests.interop.clients --brokers

# The tests of other people's clients, against real Kafka and through the proxy: an hour, and more
# where they have to be built first.
compat: setup
	$(BIN)/python -m tests.compat
	$(BIN)/python -m tests.compat.errors

generate: setup
	$(BIN)/python -m codegen generate

# 2,000 clusters of 40 virtual seconds each and the time after it, on all processors; with
# SIM_SECONDS as many of them as fit, and how many those were.
SIM_SECONDS ?=
sim: setup
	$(BIN)/kraftwire sim run --seeds 0-1999 --jobs $$(nproc) $(if $(SIM_SECONDS),--within $(SIM_SECONDS))

# Real processes, ours and Java's in one quorum, under kills, pauses and cuts.
NEMESIS_SECONDS ?= 90
nemesis: setup
	$(BIN)/python -m tests.nemesis --seconds $(NEMESIS_SECONDS)

# The documentation site in .cache/site; every warning is an error.
docs: setup
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# The tools of the targets below, separate from the environment that they inspect.
SUPPLY := .cache/supply
$(SUPPLY)/.installed: pyproject.toml
	$(PYTHON) -m venv $(SUPPLY)
	$(SUPPLY)/bin/python -m pip install --quiet 'uv>=0.5' 'cyclonedx-bom>=5' 'pip-audit>=2.7'
	touch $@

# The wheel and the sdist, the wheel of the simulator, and the list of their dependencies.
dist: setup sbom
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python -m build --wheel --no-isolation --outdir dist packages/sim

# A bill of materials (CycloneDX) for an installation without extras.
sbom: $(SUPPLY)/.installed
	mkdir -p dist
	$(SUPPLY)/bin/python -m tools.supply sbom --output dist/kraftwire.cdx.json

# Resolves the pinned versions again, with the newest releases that pyproject.toml allows.
pins: $(SUPPLY)/.installed
	$(SUPPLY)/bin/python -m tools.supply pins

# The scheduled check: known vulnerabilities of all pinned packages. It needs the network.
vulnerabilities: $(SUPPLY)/.installed
	$(SUPPLY)/bin/python -m tools.supply vulnerabilities
