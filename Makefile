# The commands of the repository. Each sets up what it needs: a fresh clone wants Python 3.11 or later and make.

STACK ?= dev
VENV := .venv
BIN := $(VENV)/bin

# The first Python on PATH that is new enough; PYTHON=… names another.
PYTHON ?= $(or $(call recent,python3),$(call recent,python3.14),$(call recent,python3.13),$(call recent,python3.12),$(call recent,python3.11),python3)
# Set if PYTHON=… is another one than that of the environment, which is then made again.
other = $(and $(findstring command,$(origin PYTHON)),$(if $(filter $(call version,$(PYTHON)),$(call version,$(BIN)/python)),,yes))
recent = $(shell $(1) -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $(1))
version = $(or $(shell $(1) -c 'import platform; print(platform.python_version())' 2>/dev/null),not there)

# Modules are compiled when first imported: compiling all of the providers' takes longer than installing them.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps
PACK := policies/.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock" $(LOCK)
UNBUILD := rm -rf build *.egg-info rehearsal/build rehearsal/*.egg-info kueue-replay/build kueue-replay/*.egg-info

# Built before the tests of `make rehearse`: beside a build they would run out of time.
TESTS_NEED := pulumi-language-python pulumi-language-python-exec pulumi-language-yaml kueue-replay registry

# What shares a control plane is on one worker, and the longest begins first (rehearsal/tests/conftest.py).
SHARED := --dist loadgroup --no-loadscope-reorder

# A file's tests share what they build and cache, so one worker runs them all; the order leaves short ones to the end.
BY_FILE := -n auto --dist loadfile --no-loadscope-reorder

# If the machine is busy, the real Kueue, whose backoffs go on while its requests wait, decides otherwise.
RERUN := --reruns 1 --only-rerun "Real time was late"

# Paths in ARGS replace the directories of a target: $(call tests,tests).
tests = $(if $(filter tests/% rehearsal/% kueue-replay/%,$(ARGS)),,$(1))

# Every run of many tests names its longest.
LONGEST := --durations=25

# Pytest's exit status if ARGS select no test, which is no failure where there are two runs.
NONE := test $$? = 5

# Pyright comes with its own node, and need not ask the network whether there is a newer one.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

# With it, each of the hundreds of processes that tests start would compile every module again: 4 s instead of 1.3 s.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install preview policies check test manifests rehearse rehearse-all lint types strict-types pytest test-rehearsal fmt docs site bench wheel dist released pin prices lock lowest clean

help: ## What there is to call.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.checkout ## The command line and what the program runs with, in .venv.

preview: $(VENV)/.checkout ## What a stack would create, without a cloud: STACK=dev.
	@$(BIN)/ebbtide preview $(STACK)

policies: policies/.venv/.installed ## The environment of the policy pack, for pulumi preview --policy-pack policies.

check: lint types ## What a change needs, in a minute: style, types, and the nearest tests that it reaches.
	@$(BIN)/python -m tests.reached $(ARGS)

test: $(VENV)/.dev ## Everything that needs nothing but Python.
	@$(MAKE) --no-print-directory -j2 lint types
	@$(MAKE) --no-print-directory pytest

manifests: $(VENV)/.dev ## The released manifests that some tests read, from pinned Go modules: needs Go and git.
	$(BIN)/python -m tests.manifests

rehearse: $(VENV)/.dev ## A stack on the real engine and a real Kubernetes, then scenarios: STACK=dev.
	@$(BIN)/ebbtide rehearse $(STACK)
	@$(BIN)/python -m ebbtide_rehearsal.tools $(TESTS_NEED) >/dev/null
	$(BIN)/pytest -m "(engine or rehearsal) and not long" -n 3 $(SHARED) $(LONGEST) $(RERUN) $(call tests,rehearsal/tests kueue-replay/tests) $(ARGS)

rehearse-all: $(VENV)/.dev policies ## Every scenario and everything else that wants a real control plane: about two hours.
	-@$(BIN)/python -m tests.manifests
	$(BIN)/pytest -m "(engine or rehearsal or released) and not alone" -n 2 $(SHARED) $(LONGEST) $(ARGS) || $(NONE)
	$(BIN)/pytest -m alone $(LONGEST) $(RERUN) $(ARGS) || $(NONE)

lint: $(VENV)/.dev ## Style, format, and who imports whom.
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --check --quiet
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell

types: $(VENV)/.dev ## Types, in seconds.
	$(BIN)/pyrefly check --output-format min-text --summary=none

strict-types: $(VENV)/.dev ## Types, by pyright in strict mode: minutes.
	$(BIN)/pyright

pytest: $(VENV)/.dev ## The tests of `make test` alone: ARGS='-k wheel'.
	$(BIN)/pytest $(BY_FILE) $(LONGEST) -m "not engine and not rehearsal" $(call tests,tests) $(ARGS)

test-rehearsal: $(VENV)/.dev ## The tests of the rehearsal and the replay that need nothing but Python: ARGS='-k azure'.
	$(BIN)/pytest $(BY_FILE) $(LONGEST) -m "not engine and not rehearsal" $(call tests,rehearsal/tests kueue-replay/tests) $(ARGS)

fmt: $(VENV)/.dev ## Fix style and format in place.
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/.checkout ## Write the pages that are generated.
	$(BIN)/python -m docs.generate

site: $(VENV)/.dev ## Build the documentation site in _site; a broken link fails.
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --conf-dir docs/site . _site

bench: $(VENV)/.dev ## Measure.
	@for file in benchmarks/*.py; do PYTHONPATH=. $(BIN)/python $$file || exit; done

wheel: $(VENV)/.dev ## Build the packages into dist.
	@$(UNBUILD)
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist . ./rehearsal ./kueue-replay
	@$(UNBUILD)

dist: $(VENV)/.dev ## Build what a release publishes, from its own sources, and check it.
	$(INSTALL) --require-hashes -r tests/packaging/requirements.txt
	@$(UNBUILD)
	rm -rf dist sbom.json
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python -m build --no-isolation --outdir dist rehearsal
	$(BIN)/python -m build --no-isolation --outdir dist kueue-replay
	@$(UNBUILD)
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	EBBTIDE_WHEELS=dist $(BIN)/pytest -n auto tests/packaging $(ARGS)
	$(BIN)/cyclonedx-py requirements requirements.txt --pyproject pyproject.toml --output-reproducible --output-file sbom.json

pin: $(VENV)/.dev ## Move a pin, and write what follows from it: NAME=kueue VERSION=0.19.3; needs Go and git.
	$(BIN)/python -m rehearsal.pins $(NAME) $(VERSION) $(DIGEST)
	-$(BIN)/python -m tests.manifests --accept
	$(BIN)/python -m rehearsal.provider_schemas --kueue "$$($(BIN)/python -m tests.manifests | grep kueue)"
	$(BIN)/python -m tests.examples.test_golden
	$(BIN)/python -m tests.contract.test_what_changes
	$(BIN)/python -m docs.generate
	@$(BIN)/python -m rehearsal.pins $(NAME)

prices: $(VENV)/.dev ## Bring the price table up to date from maintained lists, and write what follows from it.
	mkdir -p dist
	$(BIN)/python -m rehearsal.prices | tee dist/prices.md
	$(BIN)/python -m tests.examples.test_golden
	$(BIN)/python -m tests.contract.test_what_changes
	$(BIN)/python -m docs.generate

released: $(VENV)/.dev ## Record what the next release must keep: URNs and states of stacks.
	$(BIN)/python -m tests.examples.test_urns
	$(BIN)/python -m rehearsal.tests.engine.test_upgrade

lock: $(VENV)/.dev ## Compile every requirements.txt from its requirements.in; LOCK=--upgrade for newer versions.
	$(COMPILE) requirements.in -o requirements.txt
	$(COMPILE) tests/requirements.in -o tests/requirements.txt
	$(COMPILE) tests/packaging/requirements.in -o tests/packaging/requirements.txt
	$(COMPILE) policies/requirements.in -o policies/requirements.txt

lowest: $(VENV)/.dev ## Install the lowest versions that pyproject.toml allows, for a make preview or make pytest.
	$(BIN)/uv pip install --quiet --python $(BIN)/python --upgrade --resolution lowest-direct --all-extras -r pyproject.toml

FORCE:

clean: ## Remove everything that these commands have made.
	$(UNBUILD)
	rm -rf $(VENV) policies/.venv dist sbom.json _site .hypothesis .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.python: $(if $(other),FORCE)
	$(if $(call recent,$(PYTHON)),,$(error Ebbtide needs Python 3.11 or later, and $(PYTHON) is $(call version,$(PYTHON)): name another with PYTHON=python3.11))
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.runtime: requirements.txt $(VENV)/.python
	@echo "Installing what the program runs with."
	@$(INSTALL) --require-hashes -r requirements.txt
	@touch $@

# The checkout itself, editable: the command `ebbtide`, and what it names when an extra is missing. Nothing is fetched:
# setuptools, which builds it, is in requirements.txt.
$(VENV)/.checkout: pyproject.toml setup.py rehearsal/pyproject.toml kueue-replay/pyproject.toml $(VENV)/.runtime
	@$(INSTALL) --no-index --no-build-isolation --editable . --editable ./rehearsal --editable ./kueue-replay
	@$(UNBUILD)
	@touch $@

$(VENV)/.dev: tests/requirements.txt $(VENV)/.checkout
	@echo "Installing what the tests run with."
	@$(INSTALL) --require-hashes -r tests/requirements.txt
	@touch $@

# An environment of its own: pulumi-policy pins an older protobuf than the providers' packages want.
policies/.venv/.installed: policies/requirements.txt pyproject.toml setup.py $(VENV)/.python
	@echo "Installing what the policy pack runs with."
	@$(BIN)/python -m venv policies/.venv
	@$(PACK) --require-hashes -r policies/requirements.txt
	@$(PACK) --no-index --no-build-isolation --editable .
	@$(UNBUILD)
	@touch $@
