# Everything that a developer, CI or a new user runs. `make` alone lists the targets.
#
# Each step leaves a stamp file and runs again only when what it read has changed. The environment is
# .venv; the wheels go to dist/; the plugin's build folder is kept, so that ninja compiles only what
# changed.

PYTHON ?= python3
ifeq ($(origin CXX),default) # make's own default is g++, which a machine with clang may lack
CXX := c++
endif
# Compilers at a time; one takes up to 3 GB.
export MAX_JOBS ?= $(shell nproc)
# What runs here must not depend on how the caller has configured devices.
unexport PYTHONPATH TORCH_DEVICE_BACKEND_AUTOLOAD DEVHOST_DEVICE DEVHOST_DISABLE DEVHOST_STRICT \
	DEVHOST_FALLBACK OPENREG_DEVICE_COUNT OPENREG_LAUNCH OPENREG_MEMORY OPENREG_VISIBLE_DEVICES \
	OPENREG_CONFORMANCE

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install -c constraints.txt

# What is installed for what; the versions stand in constraints.txt.
packages-build := torch setuptools pybind11 ninja
packages-example := scikit-learn matplotlib tqdm
packages-test := pytest jsonschema expecttest pytest-xdist tqdm
packages-lint := ruff mypy clang-format
packages-docs := sphinx myst-parser furo sybil pytest

# Folders are listed too, so that a file that was removed or renamed also counts as a change.
HOST := pyproject.toml README.md LICENSE \
	$(shell find devhost -not -path '*__pycache__*')
OPENREG := $(filter-out %/build %/tests %.egg-info,$(wildcard plugins/openreg/*)) \
	$(shell find plugins/openreg/csrc plugins/openreg/devhost_openreg -not -path '*__pycache__*')
# Plugins in Python only: the folders of plugins/ without setup.py. The distribution is devhost-FOLDER.
PURE := $(filter-out $(patsubst plugins/%/setup.py,%,$(wildcard plugins/*/setup.py)), \
	$(patsubst plugins/%/pyproject.toml,%,$(wildcard plugins/*/pyproject.toml)))
PURE_WHEELS := $(PURE:%=dist/.devhost-%)
PURE_SOURCES := $(foreach plugin,$(PURE),$(shell find plugins/$(plugin) -mindepth 1 \
	\( -name __pycache__ -o -name build -o -name tests -o -name '*.egg-info' \) -prune -o -print))
CXX_SOURCES = $(shell find plugins/openreg -name build -prune -o \
	\( -name '*.h' -o -name '*.cpp' \) -print)

INSTALLED := $(VENV)/.wheel-devhost $(VENV)/.wheel-devhost-openreg $(PURE:%=$(VENV)/.wheel-devhost-%)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL: # pip cannot change one environment twice at a time; ninja compiles in parallel
.PHONY: help demo test stress conformance wheels lint docs screenshots bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

demo: $(INSTALLED) $(VENV)/.packages-example ## build, install, list the devices, train on one
	$(BIN)/devhost list
	$(BIN)/python examples/digits.py --device openreg

# In several processes: one that crashes or hangs is one failure, and is replaced.
PYTEST_OPTIONS := -c ../pyproject.toml --import-mode=importlib --numprocesses=auto --maxprocesses=4 \
	-o faulthandler_timeout=300 -o faulthandler_exit_on_timeout=true

# From another folder, with test modules that stay off sys.path: the wheels are tested, not ./devhost.
test: $(INSTALLED) $(VENV)/.packages-test $(VENV)/.packages-example ## run every test on the wheels
	@echo '#include <gtest/gtest.h>' | $(CXX) -E -x c++ - >/dev/null 2>&1 || echo \
		'GoogleTest is missing (Debian: libgtest-dev), so the C++ tests of the driver are left out.'
	cd tests && ../$(BIN)/pytest $(PYTEST_OPTIONS) . $(addprefix ../,$(wildcard plugins/*/tests))

# Samples of each operator, dtype and form: all there are; `make test` takes the first three.
# glibc would keep the memory of large tensors, gigabytes in the end, unless the threshold is fixed.
SAMPLES ?= 100000
conformance: $(INSTALLED) $(VENV)/.packages-test ## compare all operators with the CPU, on every sample
	cd tests && OMP_NUM_THREADS=1 OPENREG_CONFORMANCE=$(SAMPLES) MALLOC_MMAP_THRESHOLD_=131072 \
		../$(BIN)/pytest $(PYTEST_OPTIONS) \
		--quiet --max-worker-restart=1000 ../plugins/openreg/tests/conformance

# Ten million calls of the driver from C++, then threads of Python with tensors of up to 256 MiB.
stress: $(INSTALLED) $(VENV)/.packages-test ## load the device with many threads for some minutes
	cd tests && OREG_STRESS_OPERATIONS=10000000 OREG_STRESS_ROUNDS=60 ../$(BIN)/pytest \
		-c ../pyproject.toml --import-mode=importlib ../plugins/openreg/tests/test_stress.py \
		"../plugins/openreg/tests/test_driver_native.py::test_driver[]"

wheels: dist/.devhost dist/.devhost-openreg $(PURE_WHEELS) ## build all wheels into dist/

# mypy reads the types of what the host imports, so that is installed; nothing is compiled.
lint: $(VENV)/.wheel-devhost $(VENV)/.packages-lint ## check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict devhost
	$(BIN)/clang-format --dry-run -Werror $(CXX_SOURCES)

docs: $(INSTALLED) $(VENV)/.packages-docs ## build the documentation and run its examples
	cd docs && ../$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet . ../build/docs
	cd docs && ../$(BIN)/pytest -c ../pyproject.toml --import-mode=importlib .

screenshots: $(INSTALLED) ## draw what the commands look like, for the documentation
	cd docs && ../$(BIN)/python screenshots.py

# A process has room for one out-of-tree device: the stock fallback, compiled here, is measured in another.
bench: $(INSTALLED) $(VENV)/.packages-build $(VENV)/.packages-test $(VENV)/.packages-example ## compare the device's speed with the CPU's, and write docs/benchmarks.md
	mkdir -p build && rm -f build/stock_fallback.json
	$(BIN)/python benchmarks --device openreg --json build/openreg.json
	@# That some operators fail on it is part of the result.
	-DEVHOST_DEVICE=none $(BIN)/python benchmarks --device stock_fallback --json build/stock_fallback.json
	$(BIN)/python benchmarks/report.py build/openreg.json build/stock_fallback.json

clean: ## remove the environment and everything built
	rm -rf $(VENV) dist build *.egg-info plugins/*/build plugins/*/*.egg-info digits.png

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and f"devhost needs Python 3.10 or \
	newer; $(PYTHON) is {sys.version.split()[0]}. Name another one: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.packages-%: $(VENV)/pyvenv.cfg constraints.txt Makefile
	$(INSTALL) $(packages-$*)
	@touch $@

# setuptools adds to build/lib and never removes, so what an earlier build left there goes first.
dist/.devhost: $(HOST) $(VENV)/.packages-build
	rm -rf build/lib dist/devhost-*.whl
	$(PIP) wheel --no-build-isolation --no-deps --wheel-dir dist .
	@touch $@

# Against the torch that is installed. With autoload off, so that an older copy of the plugin stays
# out of its own build.
dist/.devhost-openreg: $(OPENREG) $(VENV)/.packages-build
	@command -v $(CXX) >/dev/null || { echo \
		'No C++ compiler: $(CXX) is not there. Install one with C++20 (Debian: g++) or set CXX.'; exit 1; }
	@$(BIN)/python -c 'import pathlib, sys, sysconfig; \
		header = pathlib.Path(sysconfig.get_path("include"), "Python.h"); \
		sys.exit(None if header.exists() else f"{header} is missing (Debian: python3-dev).")'
	rm -rf plugins/openreg/build/lib* dist/devhost_openreg-*.whl
	TORCH_DEVICE_BACKEND_AUTOLOAD=0 CXX='$(CXX)' $(PIP) wheel --no-build-isolation --no-deps \
		--wheel-dir dist ./plugins/openreg
	@touch $@

ifneq ($(PURE),)
$(PURE_WHEELS): dist/.devhost-%: $(PURE_SOURCES) $(VENV)/.packages-build
	rm -rf plugins/$*/build dist/devhost_$(subst -,_,$*)-*.whl
	$(PIP) wheel --no-build-isolation --no-deps --wheel-dir dist ./plugins/$*
	@touch $@
endif

# The first line installs what the wheel depends on, the second the wheel itself, even if its version
# is the same as before.
$(VENV)/.wheel-%: dist/.%
	$(INSTALL) dist/$(subst -,_,$*)-*.whl
	$(PIP) install --quiet --force-reinstall --no-deps dist/$(subst -,_,$*)-*.whl
	$(PIP) check
	@touch $@

$(VENV)/.wheel-devhost-openreg $(PURE:%=$(VENV)/.wheel-devhost-%): $(VENV)/.wheel-devhost
