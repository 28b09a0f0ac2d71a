"""A finished comparison as Markdown, for docs/results.md: every release with its figures, the
paper's beside ours.

    privet compare --recipe tiprdc-figure-6 --data FOLDER --out c
    python benchmarks/recipe_table.py c --recipe tiprdc-figure-6

Reads `frontier.parquet` of each folder (or the file itself) and nothing else; several folders are
one table, so that a study may be done in pieces and on several machines. A method that does not
take the data, a cell that failed and one that was not reached are rows that say why. Intervals are
means of the seeds' own intervals; values after a semicolon are the seeds'.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from privet.core.errors import PrivetError
from privet.studies.markdown import markdown, read
from privet.studies.recipes import told


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument(
        "folders", type=Path, nargs="+", help="--out of privet compare, or frontier.parquet"
    )
    words.add_argument("--recipe", help="whose published figures stand beside ours")
    given = words.parse_args()
    try:
        published, titles = told(given.recipe) if given.recipe else ((), {})
        sys.stdout.write(markdown(read(given.folders), published, titles))
    except PrivetError as error:
        sys.stderr.write(f"recipe_table: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
