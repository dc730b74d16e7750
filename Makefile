# `make help` lists what there is. Every target sets up what it needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
BOOK := .venv/.book
CLASS := .venv/.class
INSTALL = $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt $(CPU_BUILD)
# PyTorch's CPU build on Linux without an NVIDIA GPU, unless pip is told where to find packages. A login node or the
# build of a container has no GPU either, so CUDA=1 asks for the CUDA build.
CPU_BUILD = $(if $(CUDA),,$(shell [ "$$(uname)" != Linux ] || command -v nvidia-smi > /dev/null \
  || $(BIN)/python -m pip config list | grep -e index -e find-links > /dev/null || echo --extra-index-url https://download.pytorch.org/whl/cpu))
NO_GPU = "There is no nvidia-smi here, so PyTorch's CPU build is installed, which uses no GPU." \
  "For the CUDA build: rm -rf .venv, then make CUDA=1 $(MAKECMDGOALS)"
PAGES := $(wildcard notebooks/*.py)
# The tests of models and layers, for everyday work. Each module of lib/models and lib/layers has one here:
# tests/project/test_project.py checks that.
QUICK := tests/layers/test_layers.py tests/layers/test_properties_layers.py tests/models
TALKS := $(filter-out notebooks/baselines.ipynb notebooks/compare.ipynb,$(PAGES:.py=.ipynb))

.DEFAULT_GOAL := help
.PHONY: help run quick test check lock lab notebooks figures workflow gpu book class slides lint clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .venv

# An environment that is there keeps its Python, whatever PYTHON says now.
$(READY): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing 170 packages into .venv, once: about 0.8 GB to download (3 GB or more with PyTorch for a GPU), 2 to 15 minutes."
	@$(if $(CPU_BUILD),echo $(NO_GPU))
	$(INSTALL) -e ".[pages,dev,files]"
	@mkdir -p .venv/etc/ipython && cp companion/pages/ipython_kernel_config.py .venv/etc/ipython
	@touch $@

# Tests share the cores out among themselves. The committed figures are made on one thread: several round otherwise
# here and there.
quick test check notebooks class: export OMP_NUM_THREADS ?= 1

run: $(READY)  ## run the Mem2Mem page on real papers: out.ipynb
	@echo "Running the Mem2Mem page: about two minutes, and another one when kernels are compiled for the first time."
	$(BIN)/papermill notebooks/mem2mem.ipynb out.ipynb

quick: $(READY)  ## check the style and test models and layers, without pages: about a minute
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pytest $(QUICK) -q -n 2 --dist worksteal

test: $(READY)  ## run every test and every page
	$(BIN)/pytest --nbval-lax -n 2 --dist loadfile --no-loadscope-reorder  # in the order of conftest.py

check: $(READY)  ## run the long tests: every page with parameters, every command that the texts name
	$(BIN)/pytest tests --long -m long -n 2 --dist worksteal

lock: $(READY)  ## check that all pins can be installed, and write requirements.lock again (asks the package index)
	$(BIN)/python -m tests.tools.locks
	$(BIN)/python -m tests.tools.locks make

lab: $(READY)  ## open the pages in JupyterLab
	$(BIN)/jupyter lab --notebook-dir=. notebooks/start_here.ipynb

notebooks: $(READY)  ## build the pages from their .py sources and execute them: figures too
	$(BIN)/jupytext --to ipynb --update $(PAGES)
	COMPANION_FIGURES=$(CURDIR)/figures $(BIN)/jupyter nbconvert --to notebook --execute --inplace \
	  --ExecutePreprocessor.record_timing=False $(PAGES:.py=.ipynb)

figures: $(READY)  ## draw all figures and tables again from their stored numbers
	$(BIN)/python -m companion.pages.figures
	$(BIN)/python -m companion.make_tables render

workflow: $(READY)  ## install Snakemake, which makes every table and figure of the papers (docs/reproduce.md)
	$(INSTALL) --quiet -e ".[pages,dev,files,tables]"

gpu: $(READY)  ## on a GPU: compare results, speed and memory with the CPU (runs/gpu; continues where it stopped)
	@$(BIN)/python -m tests.gpu run

$(BOOK): $(READY)
	$(INSTALL) --quiet -e ".[pages,dev,files,book]"
	@touch $@

book: $(BOOK)  ## build the pages, the texts and the cards into a site that needs no network
	$(BIN)/sphinx-build -q -E -W --keep-going -c companion/site -d companion/site/_build/doctrees . companion/site/_build/html
	@mkdir -p companion/site/_build/html/live
	$(BIN)/python -m companion.live trained/mem2mem companion/site/_build/html/live/mem2mem.html
	$(BIN)/python -m companion.live trained/windowed companion/site/_build/html/live/windowed.html
	$(BIN)/python -m companion.live trained/read_again companion/site/_build/html/live/read_again.html
	$(BIN)/python -m companion.live towns companion/site/_build/html/live/towns.html
	$(BIN)/python -m companion.live training companion/site/_build/html/live/training.html
	$(BIN)/python -m companion.live side_by_side companion/site/_build/html/live/side_by_side.html
	@echo "The book: companion/site/_build/html/index.html (a browser opens the file; search works there too)"

$(CLASS): $(READY)
	$(INSTALL) --quiet -e ".[pages,dev,files,class]"
	@touch $@

# nbgrader calls a command of its own environment
class: export PATH := $(abspath $(BIN)):$(PATH)
class: $(CLASS)  ## build the exercises for students (class/release), with solutions (class/solution), with hidden tests (class/source)
	$(BIN)/python -m companion.site.class_pages class
	@cd class && for page in $$(ls source); do \
	  nbgrader generate_assignment $$page --create --force --Application.log_level=WARN \
	  && nbgrader generate_solution $$page --force --Application.log_level=WARN || exit 1; done

slides: $(CLASS)  ## build a talk for each page except baselines and comparison: slides/PAGE.slides.html
	@mkdir -p slides/reveal
	@packages=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
	  && cp -R $$packages/sphinx_revealjs/_static/revealjs/dist $$packages/sphinx_revealjs/_static/revealjs/plugin slides/reveal \
	  && find slides/reveal -name '*.css' -exec sed -i.bak '/@import url(http/d' {} + && find slides/reveal -name '*.bak' -delete \
	  && cp $$packages/sphinx-mathjax-offline/static/mathjax/tex-svg-full.js slides/mathjax.js
	$(BIN)/jupyter nbconvert --to slides --no-input --template talk --TemplateExporter.extra_template_basedirs=companion/site \
	  --SlidesExporter.reveal_url_prefix=reveal --output-dir slides $(TALKS)

lint: $(READY)  ## check style and types, and that every page matches its source
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --level error
	@for page in $(PAGES); do $(BIN)/jupytext --to py:percent --output - $${page%.py}.ipynb 2>/dev/null | diff - $$page \
	  || { echo "$$page and its notebook differ: make notebooks"; exit 1; }; done

clean:  ## remove runs, caches and the book, but not the environment
	rm -rf runs cache companion/site/_build class slides out.ipynb .pytest_cache .ruff_cache
