"""The browser's verifier as node can run it."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
RULES_FILE = ROOT / "src" / "privet" / "release" / "graph_rules.json"
NAMES = ("graph_wire.js", "graph_values.js", "graph_sizes.js", "verifier.js", "drift.js")


def scripts(folder: Path) -> Path:
    """Write the scripts, with the rules as web/build.py builds them in, to a folder."""
    spec = importlib.util.spec_from_file_location("build_pages", WEB / "build.py")
    assert spec is not None and spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    made = folder / "scripts"
    made.mkdir(parents=True)
    (made / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    for name in NAMES:
        shutil.copy(WEB / "static" / name, made / name)
    (made / "graph_rules.js").write_text(build.graph_rules(), encoding="utf-8")
    return made
