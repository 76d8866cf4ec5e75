# Builds, checks and runs Hostler. `make` alone lists what it can do; every environment it needs it makes in .venv.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
SEEDS ?= 200
FRESH ?= 200
CASES ?= 100000
# One worker waits for what it started while two compute; a fourth gains nothing.
JOBS ?= 3
CHECK_JOBS ?= 3
SHARES := $(addprefix tests-of-share-,$(shell seq $(CHECK_JOBS)))
QUICK := --hypothesis-profile quick -p no:schemathesis -p no:xdist -p no:anyio -p no:platformdirs -p no:cacheprovider
ARGS ?=
SAMPLE ?= 20
SEED ?= 1
MODULES ?=
MINUTES ?= 60
CODE := src tests bench packages
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

export PYTHON
# Bytecode is kept, whatever the shell says: without it every process of a test run compiles the whole house anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help up up-kubernetes test affected nightly nightly-tests test-boot test-fabric check quick-tests all-tests lint-in-one-piece fuzz sbom audit deb bench bench-guard bench-fabric bench-bringup bench-checks bench-trends bench-detection sim fabric-soak soak mutants peers docs docs-check docs-site pictures fmt lint wheels clean lock environment environment-test system-packages

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

# --- running ---------------------------------------------------------------------------------------------------------

up: environment ## start Hostler with a simulated cluster on this machine; ARGS="--nodes 16"
	$(BIN)/hostler up $(ARGS)

up-kubernetes: environment-test ## the same with a real Kubernetes, whose nodes kwok plays (needs Go 1.26; builds it once)
	@exec $(BIN)/python -m tests.controlplane.up $(ARGS)

# --- checking --------------------------------------------------------------------------------------------------------

test: system-packages environment-test ## the gate: lint, types, imports beside the tests (JOBS=3 workers); what takes long is in make nightly
	@$(MAKE) --no-print-directory --keep-going -j2 all-tests lint-in-one-piece

all-tests: environment-test
	$(BIN)/pytest tests -n $(JOBS) --dist loadgroup

lint-in-one-piece: environment-test # beside tests that tell how far they are: what it says comes at its end
	@said=$$(nice -n 5 $(MAKE) --no-print-directory lint 2>&1) && failed= || failed=$$?; \
	printf '\nmake lint%s:\n%s\n' "$${failed:+ failed}" "$$said"; exit $${failed:-0}

check: environment-test ## the fast part: lint, types, imports beside unit and property tests (few seeds), transcripts
	@$(MAKE) --no-print-directory -j --output-sync=line lint $(SHARES)

quick-tests: environment-test ## the tests of make check, by CHECK_JOBS (3) processes with their own test files each
	@$(MAKE) --no-print-directory -j --output-sync=line $(SHARES)

$(SHARES): tests-of-share-%: environment-test
	$(BIN)/pytest tests/unit tests/property tests/transcripts --seeds 4 $(QUICK) --share $*/$(CHECK_JOBS)

lint: environment-test ## lint, format check, types (the console's too), import contracts, declared dependencies, the shape of the code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports --no-logo
	$(BIN)/deptry src
	$(BIN)/python scripts/house_rules.py
	$(BIN)/python scripts/prose.py
	$(BIN)/python scripts/console_types.py

test-boot: system-packages environment-test ## boot Debian with its own cloud-init in QEMU without KVM; bootstraps it once (needs root)
	$(BIN)/pytest tests/end_to_end/debian_boot.py -n 0 -o faulthandler_timeout=0

test-fabric: system-packages environment-test ## nightly: 256 hosts in three tiers before ibsim with a real opensm, every kind of fault
	$(BIN)/pytest tests/end_to_end/fabric_three_tiers.py -n 0

affected: environment-test ## the tests that a change may break, by who imports what; ARGS="--base HEAD~1" (origin/main)
	@chosen=$$($(BIN)/python scripts/affected.py $(ARGS)) && if [ -n "$$chosen" ]; then $(BIN)/pytest $$chosen -m "not nightly or smoke" -n $(JOBS) --dist loadgroup; else echo "nothing is affected"; fi

nightly: system-packages environment-test ## what the gate leaves out, a verdict for each part and a table; ARGS="soak audit" for some of it
	$(BIN)/python scripts/nightly.py $(ARGS)

nightly-tests: environment-test # the tests that are marked nightly, and Hypothesis's draws anew
	$(BIN)/pytest tests --nightly -n $(JOBS) --dist loadgroup

sim: environment-test ## SEEDS (200) simulated worlds: safety under faults, then progress once healed
	$(BIN)/pytest tests/simulation --seeds $(SEEDS) -n $(JOBS)

fabric-soak: environment-test ## CASES (100000) drawn networks with known faults: each found as what it is; SEED (1)
	$(BIN)/python -m tests.fabric_soak --cases $(CASES) --seed $(SEED)

soak: environment-test ## SEEDS=1000 FRESH=200: known and fresh worlds, racks too, every story cut everywhere, each law's mutants; ARGS="-o json"
	$(BIN)/python -m tests.simulation.soak --seeds $(SEEDS) --fresh $(FRESH) --jobs $(JOBS) $(ARGS)

mutants: environment-test ## plant bugs and count who is caught: SAMPLE (20) a module or all, MODULES=core/policy,agent, SEED, ARGS
	$(BIN)/python -m tests.mutation --sample $(SAMPLE) --seed $(SEED) --modules "$(MODULES)" $(ARGS)

fuzz: environment-test ## MINUTES (60) of fresh wrong inputs for every reader of foreign bytes; ARGS="--seed 7 --targets slurm"
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(ARGS)

sbom: environment-test ## write build/hostler.cdx.json: everything that runs beside our own code, as CycloneDX
	$(BIN)/python scripts/supply_chain.py sbom build/hostler.cdx.json

audit: environment-test ## ask whether a locked version has a known vulnerability; says "skipped" where nobody answers
	$(BIN)/python scripts/supply_chain.py audit

bench: environment-test ## measure the numbers the documents state
	$(BIN)/python -m bench

bench-guard: environment-test ## compare this tree's figures with a reference commit's, in turns; 5 % more fails; ARGS="sqlite import"
	$(BIN)/python -m bench.guard $(ARGS)

bench-fabric: environment-test ## a network against its design by its size, discovery included, and a storm of its ports' counters
	$(BIN)/python -m bench.fabric
	$(BIN)/python -m bench.fabric_discovery
	$(BIN)/python -m bench.link_counters

bench-bringup: environment-test ## bring machines from off to production over real Redfish: a minute, and what Hostler adds; BENCH_MACHINES=4500
	$(BIN)/python -m bench bringup

bench-checks: environment-test ## plant every fault in every active check: check x plant x verdict
	$(BIN)/python -m bench checks

bench-trends: environment-test ## which rule finds which drift, and how many healthy nodes it flags: 20 seeded fleets
	$(BIN)/python -m bench trends

bench-detection: environment-test ## plant every kind of fault, and a healthy month: the truth table; ARGS="-o json"
	$(BIN)/python -m bench.detection $(ARGS)

peers: environment-test ## run other policies beside ours in the same worlds and write docs/peers.md; it goes on where it was cut off
	$(BIN)/python -m bench.peers --jobs $(JOBS) $(ARGS)

fmt: environment-test ## format the code and apply the safe fixes
	$(BIN)/ruff check --fix-only --exit-zero .
	$(BIN)/ruff format .

# --- documents -------------------------------------------------------------------------------------------------------

docs: environment ## generate docs/reference from the code, then check that it comes out the same again
	$(BIN)/python -m hostler.cli.main docs generate --out docs/reference
	$(MAKE) --no-print-directory docs-check

pictures: environment-test ## take the console's pictures for the documents (needs Chromium)
	$(BIN)/python scripts/console_pictures.py

docs-check: environment ## check that docs/reference is what the code says today
	@fresh=$$(mktemp -d) && trap 'rm -rf "$$fresh"' EXIT && \
	$(BIN)/python -m hostler.cli.main docs generate --out "$$fresh" && \
	diff -r docs/reference "$$fresh" || { echo "docs/reference differs from the code: run make docs" >&2; exit 1; }

docs-site: build/docs-environment/.made ## write the documentation as a site with search into build/site
	NO_MKDOCS_2_WARNING=1 build/docs-environment/bin/mkdocs build --strict --quiet
	@echo "build/site/quick-start.html; with search: python3 -m http.server -d build/site"

build/docs-environment/.made: requirements/docs.txt
	$(PYTHON) -m venv build/docs-environment
	build/docs-environment/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --require-hashes -r $<
	touch $@

wheels: environment ## build the distributions into dist: hostler, hostler-agent for nodes, hostler-checks to examine them
	$(BIN)/python -m hatchling build -t wheel -d dist
	cd packages/agent && $(abspath $(BIN))/python -m hatchling build -t wheel -d $(CURDIR)/dist
	cd packages/checks && $(abspath $(BIN))/python -m hatchling build -t wheel -d $(CURDIR)/dist

deb: environment ## build Debian packages into dist: hostler (some minutes) and hostler-agent
	$(BIN)/python scripts/debian_packages.py

# --- environments ----------------------------------------------------------------------------------------------------
# Each stamp is newer than what it was made from, so an environment is touched only when its lock changed.

environment: $(VENV)/.runtime ## the virtual environment that runs Hostler

environment-test: $(VENV)/.test ## the same one with the test tools

$(VENV)/.made: scripts/environment
	scripts/environment $(VENV)
	touch $@

$(VENV)/.runtime: $(VENV)/.made requirements/runtime.txt pyproject.toml
	$(PIP) install --no-deps --require-hashes -r requirements/runtime.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/.test: $(VENV)/.runtime requirements/test.txt
	$(PIP) install --no-deps --require-hashes -r requirements/test.txt
	touch $@

system-packages: ## install the system packages the tests use, or say which are missing
	scripts/system-packages

LOCK := uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --quiet --upgrade

lock: ## resolve pyproject.toml's dependencies anew into requirements/*.txt (needs uv)
	@command -v uv >/dev/null || { echo "needs uv: python3 -m pip install uv" >&2; exit 1; }
	$(LOCK) --group build --output-file requirements/runtime.txt
	$(LOCK) --extra apprise --extra tracing --extra keystone --group build --group test --constraint requirements/runtime.txt --output-file requirements/test.txt
	uv pip compile requirements/docs.in --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-header --no-annotate --quiet --upgrade --output-file requirements/docs.txt

clean: ## remove the environment and everything generated
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
