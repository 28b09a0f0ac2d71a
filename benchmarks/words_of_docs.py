"""Words of the documentation: prose, and what is generated, apart.

    python benchmarks/words_of_docs.py            # by page
    python benchmarks/words_of_docs.py --commit C # as a commit had it

Generated are the tables and commands between `<!-- table: -->` or `<!-- command: -->` and
`<!-- end -->`, which benchmarks/tables.py writes, what a script printed (transcript.md), and
audit-json.md, the reference of a format's fields, which a test holds against the code. All else is prose, hand-written tables and code
included; a word is what stands between spaces, as `wc -w` counts.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GENERATED = re.compile(r"<!-- (?:table|command): .*?<!-- end -->", re.DOTALL)
WHOLE = ("docs/audit-json.md", "docs/transcript.md")


def count(name: str, text: str) -> tuple[int, int]:
    """Words of prose, and of what is generated."""
    words = len(text.split())
    if name in WHOLE:
        return 0, words
    prose = len(GENERATED.sub(" ", text).split())
    return prose, words - prose


def pages(commit: str | None) -> dict[str, str]:
    """Every page of docs, now or as a commit had it."""
    if commit is None:
        found = sorted((ROOT / "docs").rglob("*.md"))
        return {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in found}
    listed = _git("ls-tree", "-r", "--name-only", commit, "docs").splitlines()
    names = [name for name in listed if name.endswith(".md")]
    return {name: _git("show", f"{commit}:{name}") for name in names}


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def main() -> None:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--commit", help="count the pages of this commit")
    given = words.parse_args()
    counts = {name: count(name, text) for name, text in pages(given.commit).items()}
    counts["all"] = tuple(sum(column) for column in zip(*counts.values(), strict=True))
    for name, (prose, generated) in counts.items():
        sys.stdout.write(f"{prose:7,} {generated:7,}  {name}\n")


if __name__ == "__main__":
    main()
