# Two commands do everything on a machine with Python (3.10 or later) and make: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
OLDEST ?= python3.10
BENCH := .venvs/bench
TSC := npx --yes -p typescript@5.9.3 tsc

.PHONY: help install demo compat test build-stack stack-native test-stack check check-page format dashboards slos docs constraints bench-overhead bench-ingest bench-live bench-start bench-memory bench-collector bench-explain fuzz screenshot clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

install: $(VENV)/.installed ## the virtual environment in .venv

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[dev]'
	touch $@

$(VENV)/.browser: $(VENV)/.installed
	$(PIP) -e '.[dev,browser]'
	touch $@

demo: $(VENV)/.installed ## the main job on the embedded server, with example apps
	$(BIN)/claudescope demo $(ARGS)

test: $(VENV)/.installed ## all tests but those that need a browser
	$(BIN)/python -m pytest -m 'not stack' -n 2 --dist loadfile --cov --cov-report=term:skip-covered $(ARGS)

compat: $(VENV)/.installed ## the environment for the tests beside other instrumentations and frameworks
	$(BIN)/python tests/integration/compat_venv.py

build-stack: ## the stack's programs, from pinned Go modules (ten minutes the first time; needs Go)
	scripts/build-stack

stack-native: $(VENV)/.installed build-stack ## the stack on this machine without containers, until Ctrl-C
	$(BIN)/python tests/stack/stack_native.py $(ARGS)

test-stack: $(VENV)/.browser build-stack ## the tests on the real programs of the stack and in a real browser
ifdef ARGS
	$(BIN)/python -m pytest -m stack $(ARGS)
else
	$(BIN)/python -m pytest -m stack -n 2 --dist loadfile --no-loadscope-reorder --ignore-glob='*/test_stack_*' --durations=10
	@echo "Now those that wait most of their time: more of them at once."
	$(BIN)/python -m pytest -m stack -n 4 --dist loadfile --no-loadscope-reorder tests/stack/test_stack_*.py --durations=10
endif

check: $(VENV)/.installed ## lint, types, import rules, generated docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python docs/generate.py --check
	$(BIN)/claudescope dashboards check --fail
	@$(MAKE) --no-print-directory check-page

check-page: ## types of the page's scripts; needs npx, which only CI insists on
	@if command -v npx >/dev/null; then \
		$(TSC) --noEmit --allowJs --checkJs --strict --skipLibCheck --target es2023 --lib es2023,dom,dom.iterable \
			--module es2022 --moduleResolution bundler instrumentation/claudescope/live/page/*.js; \
	else \
		echo "npx is not here, so the page's types are not checked: install nodejs and npm."; [ "$$CI" != true ]; \
	fi

format: $(VENV)/.installed ## what the linters can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

dashboards: $(VENV)/.installed ## the generated Grafana dashboards and price rules
	$(BIN)/claudescope dashboards build

slos: $(VENV)/.installed ## the rules of the default objectives
	$(BIN)/claudescope slo rules collector/slos/*.yml -o collector/rules/

docs: $(VENV)/.installed ## the generated reference tables
	$(BIN)/python docs/generate.py

constraints: ## exact versions of a fresh installation, on this Python and on the oldest (OLDEST=python3.10)
	rm -rf .venvs/newer .venvs/oldest
	$(PYTHON) -m venv .venvs/newer
	$(OLDEST) -m venv .venvs/oldest
	.venvs/newer/bin/python -m pip install --quiet '.[dev,browser]'
	.venvs/oldest/bin/python -m pip install --quiet '.[test]'
	for venv in newer oldest; do .venvs/$$venv/bin/python -m pip freeze --exclude claudescope > .venvs/$$venv.txt; done
	$(PYTHON) .ci/constraints.py .venvs/newer.txt .venvs/oldest.txt constraints.txt

$(BENCH)/.installed: pyproject.toml bench/requirements.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet -c constraints.txt -e . -r bench/requirements.txt
	touch $@

bench-overhead: $(BENCH)/.installed ## what claudescope adds to an app, beside its peers
	$(BENCH)/bin/python bench/overhead.py $(ARGS)

bench-ingest: $(VENV)/.browser ## how much the embedded server takes in while its page is open
	$(BIN)/python bench/ingest.py --page $(ARGS)

bench-live: $(VENV)/.browser ## from a step's end to the pixels that show it
	$(BIN)/python bench/live.py --streamed 6 $(ARGS)

bench-start: $(VENV)/.installed ## how fast the embedded server is there, and how small
	$(BIN)/python bench/start.py $(ARGS)

bench-memory: $(VENV)/.installed ## the embedded server's memory at a million steps
	$(BIN)/python bench/start.py --steps 1000000 $(ARGS)

bench-collector: $(VENV)/.installed build-stack ## what the stack's programs cost a span
	$(BIN)/python bench/collector.py $(ARGS)

bench-explain: $(VENV)/.installed ## how often an explanation names the true slice of labelled incidents
	$(BIN)/python bench/explain.py $(ARGS)

fuzz: $(VENV)/.installed ## hostile OTLP against a real server (ARGS="--minutes 10")
	$(BIN)/python bench/fuzz.py $(ARGS)

screenshot: $(VENV)/.browser ## docs/page.png, from the demo
	$(BIN)/python docs/screenshot.py $(ARGS)

clean: ## everything that the other targets made
	rm -rf $(VENV) .venvs .cache dist build
