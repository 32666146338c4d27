#!/bin/bash
cd /work/wt/r2 && git reset -q --hard && git clean -fdq && git checkout -q --detach "$1" && git clean -fdq && find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} + ; find streams agents store codecs tests -type d -empty -delete 2>/dev/null
python3 /work/tools-r/prep.py /work/wt/r2 2>&1 | tail -15 | cut -c1-170
python3 /work/tools-r/move.py /work/wt/r2 > /tmp/move.log 2>&1
.venv/bin/ruff check . --fix -q >/dev/null; .venv/bin/ruff format -q .; .venv/bin/ruff check . --output-format concise | tail -15; git add -A
mkdir -p /tmp/pp/ticketgate; for d in streams agents store codecs; do ln -sfn /work/wt/r2/$d /tmp/pp/ticketgate/$d; done
PYTHONPATH=/tmp/pp timeout 120 .venv/bin/lint-imports --no-cache 2>&1 | grep -E "BROKEN|broken|-> |removing|allowed|rror" | head -60
