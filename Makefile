# make run            the whole catalogue on the reference agent and two frameworks; ends with the matrix, writes report.jsonl
# make test           the linter, the type checker, the tests, and the tests of the adapters beside their frameworks
# make setup          only what the two need: .venv with the locked versions
# make lint           the linter and the type checker
# make test-adapters  the tests of the adapters whose frameworks have environments of their own
# make native         the native scripts of all causes of findings, each with the release that it pins
# make coverage       the tests, and how much of the package they reach; fails below the threshold in pyproject.toml
# make lock           new locked versions
#
# JOBS=N sets how many processes work (default: 2 for the catalogue, one per processor for the tests), PYTHON=... which Python makes .venv.

AGENTS ?= reference pydantic_ai openai_agents
BIN := .venv/bin

# Without byte code each process would spend seconds on compiling the frameworks anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup run test lint test-adapters native coverage lock

setup: .venv/installed

.venv/installed: pyproject.toml requirements/constraints.txt tools/setup tools/find-python
	@tools/setup

run: setup
	$(BIN)/pytest-approvals run $(AGENTS:%=--agent %) -n $(or $(JOBS),2) --report report.jsonl

test: lint
	$(BIN)/python -m pytest -n $(or $(JOBS),auto)
	$(BIN)/python tools/adapter_tests.py $(JOBS:%=--jobs %)

test-adapters: setup
	$(BIN)/python tools/adapter_tests.py $(JOBS:%=--jobs %)

native: setup
	$(BIN)/python -m pytest tests/docs/test_findings.py -n $(or $(JOBS),auto) -m "slow or not slow" -k native_script_shows

coverage: setup
	rm -f .coverage .coverage.*
	COVERAGE_FILE=.coverage.here $(BIN)/python -m pytest -n $(or $(JOBS),auto) --cov --cov-report=
	$(BIN)/python tools/adapter_tests.py $(JOBS:%=--jobs %) --coverage
	$(BIN)/coverage combine
	$(BIN)/coverage report

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Other frameworks have environments of their own, with lock files in requirements/adapters.
EXTRAS := pydantic-ai dbos openai-agents httpx2 mcp xdist explore

lock: setup
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade \
	  $(EXTRAS:%=--extra %) --group dev \
	  --custom-compile-command "make lock" \
	  --output-file requirements/constraints.txt pyproject.toml
	$(BIN)/python tools/adapter_tests.py --lock
