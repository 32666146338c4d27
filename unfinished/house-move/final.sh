#!/bin/bash
cd /work/wt/r && git reset -q --hard main && git clean -fdq && find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} + ; find streams agents store codecs tests -type d -empty -delete 2>/dev/null
python3 /work/tools-r/prep.py /work/wt/r 2>&1 | tail -15 | cut -c1-170
git add -A; git commit -q --no-verify -F /work/tools-r/msg1
python3 /work/tools-r/move.py /work/wt/r > /tmp/move.log 2>&1
.venv/bin/ruff check . --fix -q >/dev/null; .venv/bin/ruff format -q .; .venv/bin/ruff check . --output-format concise | tail -8
git add -A; git commit -q --no-verify -F /work/tools-r/msg2; git log --oneline -3
