# Part of Weft. SPDX-License-Identifier: Apache-2.0
# Every target sets up what it needs first. PRESET=dev, asan or tsan chooses another build than release.
PRESET ?= release
# What test-ecosystem runs: also what takes minutes, unless `make test ECOSYSTEM=1` calls it.
ECOSYSTEM_TESTS ?= ecosystem
BUILD := build/$(PRESET)
PYTHON := .venv/bin/python
LLVM := /usr/lib/llvm-22/bin

.DEFAULT_GOAL := help
.PHONY: help setup build python test test-full test-ecosystem demo bench choices gpu docs site wheel format lint clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

setup: ## Debian packages and .venv; quick when nothing is missing
	@tools/setup.sh

$(BUILD)/build.ninja: | setup
	cmake --preset $(PRESET)

build: setup $(BUILD)/build.ninja ## compile everything
	@tools/build.sh $(BUILD) all

python: setup $(BUILD)/build.ninja ## compile what the Python package loads: no tools, no tests
	@tools/build.sh $(BUILD) weft-python

test: build ## lit, GoogleTest and pytest, on all cores; ECOSYSTEM=1 adds those of test-ecosystem that are not slow
	@tools/test.sh $(BUILD) $(if $(ECOSYSTEM),--ecosystem)

test-full: build ## also the tests marked slow
	@WEFT_VERIFY=1 tools/test.sh $(BUILD) -m "slow or not slow"

test-ecosystem: python ## Weft as the attention of transformers and others, which are installed into .venv first
	$(PYTHON) -m pip install --disable-pip-version-check -q -r tools/requirements.txt -r tools/requirements-ecosystem.txt
	HF_HUB_OFFLINE=1 $(PYTHON) -m pytest -n $$(nproc) -m "$(ECOSYSTEM_TESTS)"

demo: python ## compile, run and check kernels and the papers' mechanisms, beside PyTorch and Triton; writes a page
	@$(PYTHON) -m weft.demo --page $(BUILD)/demo.html

bench: python ## compile times, call overhead, simulator speed
	@for file in benchmarks/*.py; do echo "== $$file"; $(PYTHON) $$file || exit 1; done

choices: python ## tune the papers' mechanisms without a GPU: the choices that ship with Weft; hours
	$(PYTHON) tools/tune_mechanisms.py

gpu: build ## on a machine with a GPU: its tests, kernels on simulator and GPU, times beside others'; writes a page
	.venv/bin/weft doctor --gpu --out $(BUILD)/gpu

docs: setup $(BUILD)/build.ninja ## write docs/reference from the op definitions
	cmake --build $(BUILD) --target weft-docs

site: python ## build/site: the documentation as pages that need nothing else
	$(PYTHON) tools/site build/site

wheel: setup ## dist/: a wheel for each CPython that is found
	@tools/wheel.sh

format: setup ## format C++ and Python in place
	git ls-files '*.h' '*.cpp' '*.hpp' | xargs $(LLVM)/clang-format -i
	.venv/bin/ruff format
	.venv/bin/ruff check --fix

lint: build ## check format, types and doubtful code (clang-format, clang-tidy, ruff, mypy; minutes)
	git ls-files '*.h' '*.cpp' '*.hpp' | xargs $(LLVM)/clang-format --dry-run -Werror
	.venv/bin/ruff format --check
	.venv/bin/ruff check
	.venv/bin/mypy
	cmake --preset dev
	ninja -C build/dev $$(ninja -C build/dev -t targets all | sed -nE 's/^(.*\.(pch|inc)): .*/\1/p')
	$(LLVM)/run-clang-tidy -clang-tidy-binary $(LLVM)/clang-tidy -p build/dev -quiet '/(compiler|dialects|runtime)/.*\.cpp$$'

clean: ## remove what was built; .venv stays
	rm -rf build python/weft/_native/*.so*
