#!/usr/bin/env bash
# From an empty folder to a file that can be shared and a recipient's model, in seven commands.
#     examples/first_minutes.sh REPOSITORY    where to clone from: an address, or a folder
# Prints each command with what it says: docs/transcript.md is one run of it.
set -euo pipefail
repository=$1
say() { printf '\n$ %s\n' "$*"; }

say git clone REPOSITORY privet
git clone --quiet "$repository" privet

say 'cd privet && make install && . .venv/bin/activate'
cd privet
make install
# shellcheck disable=SC1091
. .venv/bin/activate

# A stand-in for a table of your own.
say python examples/draw_people.py people.csv
python examples/draw_people.py people.csv

run() { say "$@"; "$@"; }
run privet learn hedge --data people.csv --private sex --utility income --target 0.65 --out r
run privet audit r --data people.csv --utility income --keep income --out r/audit
run privet apply r people.csv --keep income --accept income --out shared.csv

# At the recipient, who has shared.csv and nothing else.
run privet task --data shared.csv --label income --out model
