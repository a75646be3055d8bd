# make run    the whole catalogue on the reference agent and two frameworks; ends with the matrix, writes report.jsonl
# make test   the tests, the linter and the type checker
# make setup  only what the two need: .venv with the locked versions
# make lint   the linter and the type checker
# make lock   new locked versions
#
# JOBS=N sets how many processes work (default: 2 for the catalogue, one per processor for the tests), PYTHON=... which Python makes .venv.

AGENTS ?= reference pydantic_ai openai_agents
BIN := .venv/bin

# Without byte code each process would spend seconds on compiling the frameworks anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup run test lint lock

setup: .venv/installed

.venv/installed: pyproject.toml requirements/constraints.txt tools/setup tools/find-python
	@tools/setup

run: setup
	$(BIN)/pytest-approvals run $(AGENTS:%=--agent %) -n $(or $(JOBS),2) --report report.jsonl

test: lint
	$(BIN)/python -m pytest -n $(or $(JOBS),auto)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lock: setup
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --all-extras --group dev \
	  --custom-compile-command "make lock" \
	  --output-file requirements/constraints.txt pyproject.toml
