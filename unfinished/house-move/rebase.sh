#!/bin/bash
# rebase wt-r on main, resolving import conflicts; stops where a person must look
cd /work/wt/r
if [ ! -d "$(git rev-parse --git-path rebase-merge)" ]; then git rebase main >/tmp/rebase.log 2>&1 && { echo clean; }; fi
while [ -d "$(git rev-parse --git-path rebase-merge)" ]; do
  out=$(python3 /work/tools-r/resolve.py)
  if [ "$out" != "left: []" ]; then echo "$out"; exit 1; fi


  git add -A; GIT_EDITOR=true git rebase --continue >/tmp/rebase.log 2>&1
done
python3 /work/tools-r/early.py .; .venv/bin/ruff check . --fix -q >/dev/null 2>&1; .venv/bin/ruff format -q .
if [ -n "$(git status --porcelain)" ]; then git add -A; git commit -q --amend --no-edit; fi
.venv/bin/ruff check . --output-format concise | tail -5; git log --oneline -4
