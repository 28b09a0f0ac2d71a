"""Recipes: studies of papers as TOML files, to be run on the data at hand.

`privet compare --recipe NAME --data FOLDER` runs one. A recipe's file::

    title = "..."   paper = "..."   about = "..."   battery = "standard"   seeds = 1
    rebuild = false    # without decoders, in a large battery on pictures
    [sources]          # files and folders under --data; kind:path for a published layout;
                       # portraits:N and applicants:N are drawn
    celeba = "celeba64.parquet"
    [schemas.lfw]      # as a --schema file, for one source
    size = [64, 64]
    [[questions]]      # name, title, source, private, utility; on, hidden, asked: audited elsewhere
    [[runs]]           # method, budgets, settings, label; told = false: without tasks
    [[published]]      # figures of the paper: attribute, value, source, question, label, ...
    [small]            # replaces the above with --size small; settings.METHOD adds to its runs
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

from privet.core.errors import PrivetError, unknown
from privet.core.files import write_text
from privet.data.cache import cache_folder, digest
from privet.studies.applicants import applicants
from privet.studies.cells import Source
from privet.studies.study import Published, Question, Study, Variant

SIZES = ("full", "small")
MOST_DRAWN = 1_000_000
_WORDS = {"title", "paper", "about"}
_KEYS = {"battery", "rebuild", "seeds", "sources", "schemas", "questions", "runs", "published"}
# Of the tables in a list: the keys they may have, and those they must have.
_ENTRIES = {
    "questions": (
        {"name", "title", "source", "private", "utility", "on", "hidden", "asked"},
        {"source", "private", "utility"},
    ),
    "runs": ({"method", "budgets", "settings", "label", "told"}, {"method"}),
    "published": (
        {f.name for f in dataclasses.fields(Published)},
        {"attribute", "value", "source"},
    ),
}


def names() -> list[str]:
    """The recipes that come with Privet."""
    known = files("privet.studies.recipe_files").iterdir()
    return sorted(p.name.removesuffix(".toml") for p in known if p.name.endswith(".toml"))


def recipe(name: str, data: str | None = None, size: str = "full") -> Study:
    """The study of a recipe, by its name or the path of a TOML file, on what `data` says: a folder,
    or the one source itself."""
    if size not in SIZES:
        raise unknown("size", size, SIZES)
    content = _content(name)
    return study(shrink(content) if size == "small" else content, data, name)


def paper(name: str) -> tuple[tuple[Published, ...], dict[str, str]]:
    """What a recipe's paper says, and the titles of its questions; needs no data."""
    content = _content(name)
    questions = [*content.get("small", {}).get("questions", ()), *content["questions"]]
    titles = {question.get("name", ""): question.get("title", "") for question in questions}
    return tuple(Published(**one) for one in content.get("published", ())), titles


def shrink(content: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe with what `[small]` says in place of the rest; figures of a paper say nothing
    about other data."""
    small = {"settings": {}, "budgets": {}, **content.get("small", {})}
    settings, budgets = small.pop("settings"), small.pop("budgets")
    made = {**content, "published": (), **small}
    made.pop("small", None)
    made["runs"] = [
        {
            **run,
            "settings": {**run.get("settings", {}), **settings.get(run["method"], {})},
            **({"budgets": budgets[run["method"]]} if run["method"] in budgets else {}),
        }
        for run in made["runs"]
    ]
    return made


def study(content: Mapping[str, Any], data: str | None, name: str) -> Study:
    """A recipe's content as a study; questions whose data is not there are left out, and the notes
    say so."""
    answers = [_question(entry, content, data) for entry in content["questions"]]
    questions = [one for one in answers if isinstance(one, Question)]
    if not questions:
        raise PrivetError(
            f"The recipe {name} needs {', '.join(map(str, content['sources'].values()))}: say with "
            "--data in which folder they lie, or take  --size small."
        )
    asked = {question.name for question in questions}
    known = (Published(**one) for one in content.get("published", ()))
    return Study(
        tuple(questions),
        tuple(_variant(**run) for run in content["runs"]),
        title=content["title"],
        paper=content.get("paper", ""),
        about=" ".join(content.get("about", "").split()),
        seeds=content.get("seeds", 1),
        battery=content.get("battery", "standard"),
        rebuild=content.get("rebuild", True),
        published=tuple(one for one in known if one.question in asked),
        notes=tuple(one for one in answers if isinstance(one, str)),
    )


def _question(
    entry: Mapping[str, Any], content: Mapping[str, Any], data: str | None
) -> Question | str:
    """A question; a sentence where its data is not there."""
    sources = {key: _source(entry[key], content, data) for key in ("source", "on") if key in entry}
    for key, source in sources.items():
        if source is None:
            spec = content["sources"][entry[key]]
            title = entry.get("title") or entry.get("name") or "The question"
            return f"{title} is left out: there is no {spec.partition(':')[2] or spec}."
    words: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in entry.items()
        if key not in sources
    }
    words |= {"learned_on": sources["source"], "elsewhere": sources.get("on")}
    return Question(**words)


def _variant(
    method: str,
    settings: Mapping[str, Any] | None = None,
    budgets: Sequence[float] | None = None,
    **words: Any,
) -> Variant:
    dials = None if budgets is None else tuple(map(float, budgets))
    return Variant(method, tuple((settings or {}).items()), dials, **words)


def _source(key: str, content: Mapping[str, Any], data: str | None) -> Source | None:
    """A source by its name in the recipe; None where it is not there.

    A built-in name needs nothing. With `data` a folder, paths are looked for in it; anything else
    stands for the recipe's only source.
    """
    spec, schema = str(content["sources"][key]), content.get("schemas", {}).get(key)
    kind, colon, path = spec.partition(":")
    if kind in ("portraits", "toy"):
        return Source(spec)
    if kind == "applicants":
        if not path.isascii() or not path.isdigit() or not 20 <= int(path) <= MOST_DRAWN:
            raise PrivetError(
                f"{spec} should end in how many to draw, from 20 to {MOST_DRAWN:,}, such as "
                "applicants:1200."
            )
        return Source(_kept("applicants.csv", applicants(int(path)).to_csv(index=False)))
    if data is None:
        return None
    folder = Path(data).expanduser()
    if folder.is_dir():
        place = folder / (path if colon else spec)
        data = f"{kind}:{place}" if colon else str(place)
        return Source(data, _schema_file(schema)) if place.exists() else None
    if len(content["sources"]) > 1:
        raise PrivetError(
            f"This recipe has several sources ({', '.join(content['sources'])}): give --data the "
            "folder that holds them."
        )
    return Source(data, _schema_file(schema))


def _schema_file(schema: Mapping[str, Any] | None) -> str | None:
    """A recipe's words about a source as a schema file, kept under their content."""
    lines = [f"{key} = {_toml(value)}\n" for key, value in (schema or {}).items()]
    return _kept("schema.toml", "".join(lines)) if lines else None


def _kept(name: str, text: str) -> str:
    """Where a text lies as a file, under its content."""
    path = cache_folder() / "recipes" / digest(text)[:16] / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    return str(path)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def _content(name: str) -> dict[str, Any]:
    """A recipe's file, checked."""
    path = Path(name).expanduser()
    if path.suffix != ".toml" and name not in names():
        raise unknown("recipe", name, names())
    packaged = files("privet.studies.recipe_files").joinpath(f"{name}.toml")
    try:
        text = (path if path.suffix == ".toml" else packaged).read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise PrivetError(f"Cannot read the recipe {name}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PrivetError(f"The recipe {name} is not TOML: {str(error).rstrip('.')}.") from None
    small = content.get("small", {})
    _check(content, _KEYS | _WORDS | {"small"}, {"title", "sources", "questions", "runs"}, name)
    _check(small, _KEYS | {"settings", "budgets"}, set(), name)
    for part, (key, (known, needed)) in product((content, small), _ENTRIES.items()):
        for entry in part.get(key, ()):
            _check(entry, known, needed, name)
    for made, key in product((content, shrink(content)), ("source", "on")):
        for question in made["questions"]:
            if question.get(key, question["source"]) not in made["sources"]:
                raise unknown(f"source in the recipe {name}", question[key], made["sources"])
    return content


def _check(entry: Any, known: set[str], needed: set[str], name: str) -> None:
    """Refuse what is not part of a recipe, or lacks what one needs."""
    if not isinstance(entry, dict):
        raise PrivetError(
            f"The recipe {name} has something other than a table where one is needed."
        )
    for key in entry:
        if key not in known:
            raise unknown(f"key of the recipe {name}", key, known)
    for key in sorted(needed - set(entry)):
        raise PrivetError(f"The recipe {name} lacks '{key}'.")
