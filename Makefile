# Every command of the project. `make help` lists them; the work is in scripts/.
PYTHON ?= python3
OPEN ?= 1
VPY := .venv/bin/python
export OPEN
export PYTHONUNBUFFERED := 1

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: book html test lab serve notebooks lint mutants clean help env-book env-all

book: html ## build the book and serve it on the first free localhost port
	@$(VPY) -m scripts.serve

html: env-book ## build the book into _build/html, warnings are errors
	@$(VPY) -m scripts.build

serve: env-book ## serve _build/html as it is
	@$(VPY) -m scripts.serve

test: env-all ## lint, then every test, every notebook, the build and the browser
	@$(VPY) -m scripts.check

lint: env-all ## ruff and mypy
	@$(VPY) -m scripts.check --lint

lab: env-all ## JupyterLab on the notebooks
	@$(VPY) -m jupyter lab --ServerApp.root_dir=book

notebooks: env-all ## execute every notebook again and store it in normal form
	@$(VPY) -m scripts.notebooks

mutants: env-all ## mutation tests of the core (half an hour or more)
	@$(VPY) -m scripts.mutants

clean: ## remove what the commands made, except .venv and downloads
	@rm -rf _build mutants .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

env-book env-all: env-%:
	@command -v $(PYTHON) >/dev/null || { \
		echo "No $(PYTHON) here: install Python 3.11 or 3.12, or name one: make PYTHON=..."; exit 1; }
	@$(PYTHON) -m scripts.env $*
