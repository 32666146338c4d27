# ticketgate. `make demo` and `make test` do all set-up on a machine with Python 3.11, 3.12 or 3.13 and nothing else.

# The first Python that fits; set PYTHON to choose another.
FITS := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	"$$p" -c '$(FITS)' >/dev/null 2>&1 && command -v "$$p" && break; done)

VENV := .venv
BIN := $(VENV)/bin
JARS := deploy/kafka/target/lib
# Where `make kafka` and `make redis` keep their data; `make clean` removes the defaults.
KAFKA_DATA ?= deploy/kafka/target/data
REDIS_DATA ?= deploy/kafka/target/redis
PACKAGES := codecs store agents streams
# How long `make fuzz` lets the fuzzer loose on each reader, and on which; all if none is named.
FUZZ_SECONDS ?= 600
FUZZ ?=
# Test processes at once; 0 runs all in one. Most of the time goes by in waiting, so one more than a small machine has cores.
JOBS ?= 3

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help venv install demo demo-kill demo-funnel demo-review test test-browser lint types unit chaos fuzz bench bench-parts seeds conformance kafka-jars kafka-if-possible kafka redis constraints clean FORCE

help:
	@echo 'make demo         stream sample tickets through a broker, Redis and a worker; shows where each went'
	@echo 'make demo-kill    the same with two workers, one of which is killed in the middle; counts what is lost or doubled'
	@echo 'make demo-funnel  propose sample payments to the funnel, beside an example bank; shows what came of each'
	@echo 'make demo-review  settle on the pages of the console what sample tickets leave for a person, by a script'
	@echo 'make test         lint, types, and all tests on real parts (half an hour on two cores)'
	@echo 'make lint|types|unit   the parts of make test; JOBS=$(JOBS) test processes at once'
	@echo 'make chaos        the long tests: storms of faults on real brokers, 10,000 interleavings, 50,000 examples'
	@echo 'make test-browser the console in Chromium: every page, settling each way, kills; and how long the server took'
	@echo 'make fuzz         what reads from strangers, under a coverage-guided fuzzer, FUZZ_SECONDS=$(FUZZ_SECONDS) each (Linux)'
	@echo 'make bench        ticketgate beside what you would build instead; a table, a plot and results.json in build/bench'
	@echo 'make bench-parts  the other comparisons of tests/bench/README.md'
	@echo 'make conformance  the System One conformance suite against `ticketgate serve`; keeps its report'
	@echo 'make seeds        each fixture, number, case and command that this began with, and what came out'
	@echo 'make install      the virtual environment in .venv, with the command .venv/bin/ticketgate'
	@echo 'make kafka-jars   fetch Apache Kafka (44 MB, once; needs Java 17 or newer, and Maven)'
	@echo 'make kafka        Apache Kafka on 127.0.0.1:9092 until Ctrl-C, data in KAFKA_DATA ($(KAFKA_DATA))'
	@echo 'make redis        Valkey on 127.0.0.1:6379 until Ctrl-C, data in REDIS_DATA ($(REDIS_DATA))'
	@echo 'make constraints  resolve the pinned dependencies anew'
	@echo 'make clean        remove all that make made'

# --- set-up -----------------------------------------------------------------------------------------------------

venv: $(BIN)/python
install: $(VENV)/installed

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then \
		echo 'make: no Python 3.11, 3.12 or 3.13 found; install one, or name it: make PYTHON=/path/to/python3' >&2; exit 1; fi
	@"$(PYTHON)" -c '$(FITS)' || { \
		echo "make: $(PYTHON) is $$("$(PYTHON)" -V 2>&1); ticketgate needs Python 3.11, 3.12 or 3.13" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
		echo 'make: this Python cannot make virtual environments; on Debian and Ubuntu: apt-get install python3-venv' >&2; \
		exit 1; }
	@"$(PYTHON)" -m venv $(VENV)

# Exactly what the constraints name, checked by hash.
$(VENV)/requirements: deploy/constraints.txt $(BIN)/python
	@echo 'Installing the dependencies into $(VENV) (once) ...'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r deploy/constraints.txt
	@touch $@

# A strict editable install links each file, so a file that comes or goes needs it again; a changed one does not.
# Listed under the shell's number, for `make kafka` and `make redis` are started at once in two terminals.
$(VENV)/files: FORCE | $(BIN)/python
	@new=$@.$$$$; find $(PACKAGES) -type f ! -path '*/__pycache__/*' | LC_ALL=C sort > $$new; \
		if cmp -s $$new $@; then rm $$new; else mv $$new $@; fi

$(VENV)/installed: $(VENV)/requirements $(VENV)/files pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
		--config-settings editable_mode=strict -e .
	@touch $@

FORCE:

# --- the demo and the tests -------------------------------------------------------------------------------------

demo: install kafka-if-possible
	@$(BIN)/ticketgate demo

demo-kill: install kafka-jars
	@$(BIN)/ticketgate demo --kill

demo-funnel: install kafka-if-possible
	@$(BIN)/ticketgate demo --funnel

demo-review: install kafka-jars
	@$(BIN)/ticketgate demo --review

test: lint types kafka-if-possible unit

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

# mypy runs in tests/: from the root, `import codecs` would find ours instead of the standard library's.
types: install
	cd tests && ../$(BIN)/mypy $(PACKAGES:%=-p ticketgate.%)
	$(BIN)/pyright

# Most of the time goes by in waiting for processes, so files run side by side, each process with a broker of its own.
unit: install
	$(BIN)/pytest -m 'not chaos and not browser' -n $(JOBS) --dist loadfile

# Under half an hour; `make bench BENCH=--full` takes three sizes of batches. tests/bench/README.md says what it shows.
bench: install kafka-jars
	$(BIN)/python -m tests.bench.rivals $(BENCH)

# Each prints a table; tests/bench/README.md has what they printed and what it shows. About half an hour.
bench-parts: install kafka-jars
	$(BIN)/python -m tests.bench.policy_cost
	$(BIN)/python -m tests.bench.cross_encoder
	$(BIN)/python -m tests.bench.guarantee_cost
	$(BIN)/python -m tests.bench.banking77
	$(BIN)/python -m tests.bench.memory
	$(BIN)/python -m tests.bench.funnel

chaos: install kafka-jars
	$(BIN)/pytest -m chaos

# The pages in the system's Chromium, on a real worker; KEEP_PICTURES=1 keeps what they look like in streams/console.
test-browser: install kafka-jars
	$(BIN)/pytest -m browser -s tests/browser

# Each fixture, number, case and command that this began with: what was asked for, what came out. Also in `make test`.
seeds: install
	@$(BIN)/python -m tests.seeds

fuzz: install
	$(BIN)/python -m tests.untrusted.fuzz --seconds $(FUZZ_SECONDS) $(FUZZ)

conformance: install
	KEEP_CONFORMANCE=1 $(BIN)/pytest -m conformance tests/streams/process/web

# --- Apache Kafka and Redis without Docker ----------------------------------------------------------------------

kafka-jars: $(JARS)/complete
	@:

$(JARS)/complete: deploy/kafka/pom.xml
	@command -v mvn >/dev/null || { \
		echo 'make: Apache Kafka is fetched by Maven; install it (Debian and Ubuntu: apt-get install maven)' >&2; exit 1; }
	@echo 'Fetching Apache Kafka with Maven into $(JARS) (44 MB, once) ...'
	@rm -rf $(JARS)  # jars of another version must not stand beside these
	@# Maven ends with terminal escapes, terminal or not, so it is heard only if it fails.
	@told=$$(mvn -q -B -Dstyle.color=never -f deploy/kafka/pom.xml package 2>&1) || { echo "$$told" >&2; exit 1; }
	@touch $@

kafka-if-possible: install
	@if why=$$($(BIN)/python -m ticketgate.streams.parts.java 2>&1); then \
		if [ ! -e $(JARS)/complete ] && ! command -v mvn >/dev/null; then \
			echo 'No Apache Kafka: Maven is not installed. The demo takes the embedded broker; tests marked kafka are skipped.'; \
		elif ! $(MAKE) --no-print-directory kafka-jars; then \
			echo 'No Apache Kafka: Maven could not fetch it. The demo takes the embedded broker; tests marked kafka are skipped.'; \
		fi; \
	else \
		echo "No Apache Kafka: $$why. The demo takes the embedded broker; tests marked kafka are skipped."; \
	fi

kafka: install kafka-jars
	@$(BIN)/python -m ticketgate.streams.parts.foreground kafka --port 9092 --data '$(KAFKA_DATA)'

redis: install
	@$(BIN)/python -m ticketgate.streams.parts.foreground valkey --port 6379 --data '$(REDIS_DATA)'

# --- upkeep -----------------------------------------------------------------------------------------------------

UV_COMPILE = $(VENV)/uv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	--generate-hashes --no-header --no-annotate --no-emit-index-url

constraints: venv
	@test -x $(VENV)/uv/bin/uv || { $(BIN)/python -m venv $(VENV)/uv && $(VENV)/uv/bin/pip install --quiet uv; }
	$(UV_COMPILE) --all-extras pyproject.toml -o deploy/constraints.txt
	echo 'setuptools>=77' | $(UV_COMPILE) pyproject.toml - -c deploy/constraints.txt -o deploy/constraints-runtime.txt
	$(UV_COMPILE) tests/bench/rivals/requirements.in -o tests/bench/rivals/requirements.txt

clean:
	rm -rf $(VENV) build dist deploy/kafka/target .mypy_cache tests/.mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache
