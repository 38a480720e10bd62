# Two commands matter: `make book` and `make test`. `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PORT ?= 8000
ARGS ?=
# Where there is no NVIDIA driver, PyTorch comes from its own index, without CUDA. One that is already
# installed is not used: the notebooks' outputs are those of the locked one.
TORCH ?= $(if $(wildcard /proc/driver/nvidia)$(shell command -v nvidia-smi),cuda,cpu)
SIZE_cpu = about 0.6 GB to download, 2 GB on disk
SIZE_cuda = 3.4 GB to download, 7 GB on disk
# Caches, and what Jupyter notes, go into the environment where the home cannot be written to.
ifeq ($(shell test -w "$$HOME" || echo read-only),read-only)
export PIP_CONFIG_FILE := $(or $(PIP_CONFIG_FILE),$(HOME)/.config/pip/pip.conf)
export npm_config_userconfig := $(or $(npm_config_userconfig),$(HOME)/.npmrc)
export HOME := $(CURDIR)/$(VENV)/home
endif
# A worker for each core and one more, for some tests wait; up to four: more would fill the memory of
# a small machine. Each has one thread: two kernels of two threads each, on two cores, wait for each
# other and take five times as long. A worker runs whole files: a browser starts once for each, not
# once for each file and worker. The files with the longest tests come first, as they are collected.
PYTEST = PYTEST_XDIST_AUTO_NUM_WORKERS=$$(($$(getconf _NPROCESSORS_ONLN) + 1)) \
	OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m pytest
WORKERS = -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help book pdf film test unit fresh lint mutants notebooks train bench results serve lock clean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  PYTHON=python3.12 chooses the Python of $(VENV); now: $(PYTHON)"
	@echo "  TORCH=cuda or TORCH=cpu chooses PyTorch with or without CUDA; now: $(TORCH)"

book: $(READY)  ## execute what is stale, build the book: _build/html/index.html
	$(BIN)/python book/_tools/make_notebooks.py
	$(BIN)/python book/_tools/picture.py
	@rm -rf _build/html
	@$(BIN)/python book/_tools/fingerprint.py > _build/fingerprint
	$(BIN)/jb build --all -W -n --keep-going .
	@mv _build/fingerprint _build/html/.fingerprint  # tells the tests of the site that it is current

# `make pdf book` also links it from the pages.
pdf: $(READY)  ## the book as a PDF, printed by Chromium: _build/capsnet-book.pdf
	$(BIN)/python book/_tools/make_notebooks.py
	$(BIN)/jb build --builder singlehtml -W -n --keep-going .
	$(BIN)/python book/_tools/pdf.py

film: book  ## film the page's widget of routing for README.md: book/_static/routing.gif
	$(BIN)/python book/_tools/film_routing.py

test: lint unit  ## lint, types, unit tests, then the notebooks that a change may have touched
	@stale=$$($(BIN)/python book/_tools/make_notebooks.py --stale) && \
		if [ -z "$$stale" ]; then echo "no notebook is stale; make fresh runs them all"; \
		else $(PYTEST) $(WORKERS) --nbval $$stale; fi

unit: $(READY)  ## the unit tests, those of the built site among them
	$(PYTEST) $(WORKERS) tests

fresh: $(READY)  ## run every notebook as Colab would: fresh environment, capsnet from git
	$(PYTEST) -m fresh -s tests/book/test_fresh.py

lint: $(READY)  ## ruff, mypy, the types of the pages' scripts, and the workflows
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	PATH="$$PWD/$(BIN):$$PATH" $(VENV)/node_modules/.bin/tsc -p book/capsnet_book/play
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema -q --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/zizmor --offline --quiet .github

mutants: $(READY)  ## does a test need each line of functional, layers, checks, and of fast routing and convolution? (an hour)
	VIRTUAL_ENV=$(VENV) $(BIN)/uv run --no-project --with mutmut==3.8.1 python .ci/mutants

notebooks: $(READY)  ## make notebooks/ from book/, executing only what is stale, and the first picture
	$(BIN)/python book/_tools/make_notebooks.py
	$(BIN)/python book/_tools/picture.py

train: $(READY)  ## train on MNIST; options in ARGS="--epochs 2 …"
	$(BIN)/capsnet train --dataset mnist $(ARGS)

bench: $(READY)  ## compare the speed of networks on this machine: results/bench (half an hour)
	$(BIN)/python -m experiments.bench $(ARGS)

results: $(READY)  ## run what the ledger lacks (days); ARGS="--list" says what that is
	$(BIN)/python -m experiments $(ARGS)

serve: book  ## build the book and show it at http://localhost:8000 (PORT=…)
	$(BIN)/python -m http.server --bind localhost --directory _build/html $(PORT)

lock: $(READY)  ## write requirements.txt anew from pyproject.toml
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --all-extras \
		--group book --group dev --no-annotate --generate-hashes --custom-compile-command "make lock" pyproject.toml -o requirements.txt

clean:  ## remove the built book and caches; .venv stays
	rm -rf _build build mutants .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
	find capsnet capsnet_lab book experiments tests -name __pycache__ -type d \
		-exec rm -rf {} +

# An environment is made once, and again when the lock changes or another Python or PyTorch is asked
# for by name.
ifneq ($(origin PYTHON),file)
ifneq ($(shell $(BIN)/python -V 2>&1 || true),$(shell $(PYTHON) -V 2>&1))
CLEAR := --clear
.PHONY: $(READY)
endif
endif
ifneq ($(origin TORCH),file)
ifneq ($(shell cat $(READY) 2>&1),$(TORCH))
CLEAR := --clear
.PHONY: $(READY)
endif
endif

# uv installs the lock four times as fast as pip does, which takes over where uv fails. uv searches
# where pip is configured to search, unless uv's own variables say otherwise. For PyTorch without
# CUDA the lock only constrains versions: it needs fewer packages, and the lock has another hash for
# it. Bytecode is compiled once, here: PyTorch then starts in half the time even where Python may not
# write any, as in many containers.
$(READY): requirements.txt pyproject.toml package-lock.json
	@command -v $(PYTHON) >/dev/null || { \
		echo "$(PYTHON) was not found. Install Python 3.11 to 3.14 (Debian, Ubuntu: apt install python3 python3-venv)."; \
		exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || { \
		echo "The lock has packages for Python 3.11 to 3.14, $(PYTHON) is $$($(PYTHON) -V). Name another: make PYTHON=python3.12 …"; \
		exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
		echo "$(PYTHON) cannot make environments. Install its venv module (Debian, Ubuntu: apt install python3-venv)."; \
		exit 1; }
	@echo "Installing the locked requirements into $(VENV), once: $(SIZE_$(TORCH))"
	$(PYTHON) -m venv $(CLEAR) $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$(grep '^uv==' requirements.txt | cut -d' ' -f1)
	@of_pip() { for place in :env: global; do \
			$(BIN)/python -m pip config get "$$place.$$1" 2>/dev/null && break; done; }; \
		export UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$$(of_pip index-url)}" \
			UV_EXTRA_INDEX_URL="$${UV_EXTRA_INDEX_URL:-$$(of_pip extra-index-url)}" \
			UV_FIND_LINKS="$${UV_FIND_LINKS:-$$(of_pip find-links)}" \
			UV_INDEX_STRATEGY="$${UV_INDEX_STRATEGY:-unsafe-best-match}" VIRTUAL_ENV=$(VENV); \
		what="-r requirements.txt"; \
		if [ $(TORCH) = cpu ]; then \
			if UV_HTTP_CONNECT_TIMEOUT=5 UV_HTTP_RETRIES=1 $(BIN)/uv pip install --dry-run --reinstall \
				--no-deps --torch-backend cpu torch 2>/dev/null; then \
				what="--torch-backend cpu --no-verify-hashes --constraint requirements.txt"; \
				what="$$what -r pyproject.toml --all-extras --group book --group dev"; \
			else \
				echo "PyTorch's own index cannot be reached. On Linux PyTorch then brings CUDA: $(SIZE_cuda)"; \
			fi; \
		fi; \
		$(BIN)/uv pip install $$([ -t 2 ] || echo --quiet) --compile-bytecode $$what || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --offline --no-deps --no-build-isolation --editable .
	cp package.json package-lock.json $(VENV)
	cd $(VENV) && PATH="$$PWD/bin:$$PATH" npm ci --loglevel=error --no-audit --no-fund --no-update-notifier
	@echo $(TORCH) >$@
