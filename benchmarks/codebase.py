"""Size and shape of the package's source: statements, import cycles, long functions, start-up time.

    python benchmarks/codebase.py [SRC]                  prints the figures as a Markdown table
    python benchmarks/codebase.py SRC --json after.json  and writes them as JSON
    python benchmarks/codebase.py --before a.json --after b.json     one table of two such files

SRC is a folder that holds the package `privet`; by default the one beside this file. Imports count
wherever they stand: at the top of a file, inside a function, or under `TYPE_CHECKING`. The figures
of the source do not depend on the machine; the seconds do. Needs ruff.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Imports = dict[str, set[str]]
"""What each module imports, by name."""

COMPLEX = 15
"""Most branches of a function, by ruff's C901."""
BRANCHES = (
    ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case,
    ast.comprehension, ast.Assert,
)  # fmt: skip
"""What makes a branch, apart from `and` and `or`."""
WIDE = 100
"""Most columns of a line."""
WORDS = {
    "statements": "statements in src",
    "files": "Python files",
    "root_modules": "modules at the root of the package",
    "module_cycles": "import cycles between modules (modules in the largest)",
    "room_cycles": "import cycles between rooms (rooms in the largest)",
    "median_file": "lines of a file, median",
    "p95_file": "lines of a file, 95th percentile",
    "complex_functions": f"functions over complexity {COMPLEX} (ruff C901)",
    "branching_functions": "the same, operators and comprehensions counted (the most)",
    "wide_lines": f"lines over {WIDE} columns",
    "undocumented_classes": "public classes without a docstring",
    "public_classes": "public classes",
    "loaded_by_hedge": "Privet modules loaded by `import privet.methods.hedge`",
    "help_seconds": "seconds of `privet --help`",
    "import_seconds": "seconds of `import privet`",
    "test_seconds": "seconds of the tests",
    "mutation_score": "mutants of evidence that the tests notice",
}
"""Every figure, in the order it is shown, and what it is called in the table."""


def measure(src: Path, repeats: int = 5) -> dict[str, Any]:
    """Every figure of one source folder. Those that take minutes are left open."""
    files = sorted(src.rglob("*.py"))
    trees = {path: ast.parse(path.read_text()) for path in files}
    lines = [path.read_text().splitlines() for path in files]
    lengths = sorted(map(len, lines))
    imports = {module_name(src, path): imported(src, path, tree) for path, tree in trees.items()}
    classes = [node for tree in trees.values() for node in public_classes(tree)]
    return {
        "statements": sum(
            isinstance(node, ast.stmt) for tree in trees.values() for node in ast.walk(tree)
        ),
        "files": len(files),
        "root_modules": sum(1 for path in (src / "privet").glob("*.py")),
        "module_cycles": described(cycles(imports)),
        "room_cycles": described(cycles(rooms(imports))),
        "median_file": int(statistics.median(lengths)),
        "p95_file": lengths[min(int(0.95 * len(lengths)), len(lengths) - 1)],
        "complex_functions": complex_functions(src),
        "branching_functions": branching_functions(list(trees.values())),
        "wide_lines": sum(len(line) > WIDE for text in lines for line in text),
        "undocumented_classes": sum(ast.get_docstring(node) is None for node in classes),
        "public_classes": len(classes),
        "loaded_by_hedge": loaded(src, "privet.methods.hedge"),
        "help_seconds": fastest(src, ["-m", "privet", "--help"], repeats),
        "import_seconds": fastest(src, ["-c", "import privet"], repeats),
        "test_seconds": None,
        "mutation_score": None,
    }


def module_name(src: Path, path: Path) -> str:
    """`src/privet/data/__init__.py` is `privet.data`.

    >>> module_name(Path("src"), Path("src/privet/data/__init__.py"))
    'privet.data'
    """
    parts = path.relative_to(src).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(src: Path, path: Path, tree: ast.AST) -> set[str]:
    """Modules of the package that a file names in an import, wherever in the file that stands.

    A package that is only on the way to a submodule is not counted: nothing of it is asked for.
    """
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = node.module or ""
            if node.level:
                here = module_name(src, path).split(".")
                here = here if path.name == "__init__.py" else here[:-1]
                start = ".".join(
                    [*here[: len(here) - node.level + 1], *([node.module] if node.module else [])]
                )
            # `from package import name` asks for a submodule where there is one of that name.
            for alias in node.names:
                inner = src.joinpath(*start.split("."), alias.name)
                is_module = inner.with_suffix(".py").is_file() or (inner / "__init__.py").is_file()
                found.add(f"{start}.{alias.name}" if is_module else start)
    return {name for name in found if name.split(".")[0] == "privet"} - {module_name(src, path)}


def rooms(imports: Imports) -> Imports:
    """The same between the packages and modules right under `privet`."""
    found: Imports = {}
    for module, names in imports.items():
        room = room_of(module)
        found.setdefault(room, set()).update(room_of(name) for name in names)
    return {room: names - {room} for room, names in found.items()}


def room_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


def cycles(imports: Imports) -> list[list[str]]:
    """Strongly connected components of more than one module, the largest first (Tarjan, 1972).

    >>> cycles({"a": {"b"}, "b": {"a"}, "c": {"a"}})
    [['a', 'b']]
    """
    place: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        place[name] = lowest[name] = len(place)
        stack.append(name)
        for other in sorted(imports.get(name, ())):
            if other not in place:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], place[other])
        if lowest[name] == place[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    sys.setrecursionlimit(max(sys.getrecursionlimit(), 10 * len(imports) + 1000))
    for name in sorted(imports):
        if name not in place:
            visit(name)
    return sorted(found, key=lambda group: (-len(group), group))


def described(found: list[list[str]]) -> str:
    return f"{len(found)} ({len(found[0])})" if found else "0"


def public_classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    """Classes at the top of a file whose names do not start with an underscore."""
    return (
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )


def complex_functions(src: Path) -> int:
    command = [
        "ruff",
        "check",
        "--isolated",
        "--select",
        "C901",
        "--config",
        f"lint.mccabe.max-complexity={COMPLEX}",
    ]
    ruff = Path(sys.executable).with_name("ruff")
    command[0] = str(ruff) if ruff.exists() else "ruff"
    done = subprocess.run(
        [*command, "--output-format", "json", str(src)], capture_output=True, text=True, check=False
    )
    return len(json.loads(done.stdout))


def branching_functions(trees: list[ast.Module]) -> str:
    """How many functions have more than COMPLEX branches, and how many branches the worst has."""
    found = [
        branches(node)
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return f"{sum(count > COMPLEX for count in found)} ({max(found, default=0)})"


def branches(function: ast.AST) -> int:
    """McCabe's number with every choice in it: C901 passes over those inside expressions.

    >>> branches(ast.parse("def f(a, b): return [x for x in a] if a and b else b").body[0])
    4
    """
    count = 1
    for node in ast.walk(function):
        if isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, BRANCHES):
            count += 1
    return count


def loaded(src: Path, module: str) -> int:
    """How many modules of the package Python has loaded after one import."""
    code = (
        f"import sys, {module}; print(sum(name.split('.')[0] == 'privet' for name in sys.modules))"
    )
    return int(
        subprocess.run(
            [sys.executable, "-c", code],
            env=environment(src),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )


def fastest(src: Path, words: list[str], repeats: int) -> float:
    """Seconds of the fastest of some runs, after one that warms the file cache."""
    found = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, *words], env=environment(src), stdout=subprocess.DEVNULL, check=True
        )
        found.append(time.perf_counter() - start)
    return round(min(found[1:]), 3)


def environment(src: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(src), "OMP_NUM_THREADS": "1"}


def table(columns: dict[str, dict[str, Any]]) -> str:
    """Markdown: one row per figure, one column per measurement."""
    rows = [f"| | {' | '.join(columns)} |", f"|---{'|---:' * len(columns)}|"]
    for key, words in WORDS.items():
        rows.append(
            f"| {words} | {' | '.join(shown(figures.get(key)) for figures in columns.values())} |"
        )
    return "\n".join(rows)


def shown(value: Any) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "src", nargs="?", type=Path, default=Path(__file__).resolve().parents[1] / "src"
    )
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--before", type=Path)
    parser.add_argument("--after", type=Path)
    parser.add_argument(
        "--cycles", action="store_true", help="name the modules and rooms of every cycle"
    )
    asked = parser.parse_args()
    if asked.before and asked.after:
        sys.stdout.write(
            table(
                {
                    "before": json.loads(asked.before.read_text()),
                    "after": json.loads(asked.after.read_text()),
                }
            )
            + "\n"
        )
        return
    src = asked.src.resolve()
    figures = measure(src)
    sys.stdout.write(table({"now": figures}) + "\n")
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=1) + "\n")
    if asked.cycles:
        imports = {
            module_name(src, path): imported(src, path, ast.parse(path.read_text()))
            for path in sorted(src.rglob("*.py"))
        }
        for group in [*cycles(imports), *cycles(rooms(imports))]:
            sys.stdout.write(f"\ncycle: {', '.join(group)}\n")


if __name__ == "__main__":
    main()
