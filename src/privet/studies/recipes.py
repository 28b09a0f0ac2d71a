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
    [[published]]      # figures of the paper: attribute, value, source, question, label, budget, ...
    [small]            # replaces the above with --size small; settings.METHOD adds to its runs
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
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
_KEYS = {
    "title",
    "paper",
    "about",
    "battery",
    "rebuild",
    "seeds",
    "sources",
    "schemas",
    "questions",
    "runs",
    "published",
    "small",
}
_SMALL = _KEYS - {"small", "title", "paper", "about"} | {"settings", "budgets"}


def names() -> list[str]:
    """The recipes that come with Privet."""
    return sorted(
        p.name.removesuffix(".toml")
        for p in files("privet.studies.recipe_files").iterdir()
        if p.name.endswith(".toml")
    )


def recipe(name: str, data: str | None = None, size: str = "full") -> Study:
    """The study of a recipe, by its name or the path of a TOML file, on what `data` says: a folder,
    or the one source itself."""
    if size not in SIZES:
        raise unknown("size", size, SIZES)
    content = _content(name)
    if size == "small":
        content = shrink(content)
    return study(content, data, name)


def told(name: str) -> tuple[tuple[Published, ...], dict[str, str]]:
    """What a recipe's paper says, and the titles of its questions; needs no data."""
    content = _content(name)
    titles = {
        raw.get("name", ""): raw.get("title", "")
        for part in (content.get("small", {}), content)
        for raw in part.get("questions", ())
    }
    return tuple(Published(**raw) for raw in content.get("published", ())), titles


def shrink(content: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe with what `[small]` says in place of the rest; figures of a paper say nothing
    about other data."""
    small = dict(content.get("small", {}))
    settings, budgets = small.pop("settings", {}), small.pop("budgets", {})
    made = {**{k: v for k, v in content.items() if k not in ("small", "published")}, **small}
    runs = [dict(run) for run in made["runs"]]
    for run in runs:
        run["settings"] = {**run.get("settings", {}), **settings.get(run["method"], {})}
        if run["method"] in budgets:
            run["budgets"] = budgets[run["method"]]
    return {**made, "runs": runs}


def study(content: Mapping[str, Any], data: str | None, name: str) -> Study:
    """A recipe's content as a study; questions whose data is not there are left out, and the notes
    say so."""
    kept, notes = [], []
    for raw in content["questions"]:
        sources = {key: _source(raw[key], content, data) for key in ("source", "on") if key in raw}
        absent = next((raw[key] for key, source in sources.items() if source is None), None)
        title = raw.get("title") or raw.get("name") or "The question"
        if absent is not None:
            notes.append(
                f"{title} is left out: there is no {content['sources'][absent].partition(':')[2] or content['sources'][absent]}."
            )
            continue
        kept.append(_question(raw, sources))
    if not kept:
        wanted = ", ".join(str(spec) for spec in content["sources"].values())
        raise PrivetError(
            f"The recipe {name} needs {wanted}: say with --data in which folder they lie, or take  --size small."
        )
    variants = tuple(
        Variant(
            run["method"],
            tuple(run.get("settings", {}).items()),
            tuple(float(b) for b in run["budgets"]) if "budgets" in run else None,
            run.get("label", ""),
            run.get("told", True),
        )
        for run in content["runs"]
    )
    there = {question.name for question in kept}
    published = tuple(
        p for raw in content.get("published", ()) if (p := Published(**raw)).question in there
    )
    return Study(
        tuple(kept),
        variants,
        content.get("seeds", 1),
        content.get("battery", "standard"),
        content.get("rebuild", True),
        True,
        content["title"],
        content.get("paper", ""),
        " ".join(content.get("about", "").split()),
        published,
        tuple(notes),
    )


def _question(raw: Mapping[str, Any], sources: Mapping[str, Source | None]) -> Question:
    learned_on, elsewhere = sources["source"], sources.get("on")
    assert learned_on is not None
    listed = {key: tuple(raw.get(key, ())) for key in ("private", "utility", "hidden", "asked")}
    return Question(
        learned_on,
        name=raw.get("name", ""),
        title=raw.get("title", ""),
        elsewhere=elsewhere,
        **listed,
    )


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
                f"{spec} should end in how many to draw, from 20 to {MOST_DRAWN:,}, such as applicants:1200."
            )
        return Source(_kept("applicants.csv", applicants(int(path)).to_csv(index=False)))
    if data is None:
        return None
    folder = Path(data).expanduser()
    if folder.is_dir():
        place = folder / (path if colon else spec)
        return (
            Source(f"{kind}:{place}" if colon else str(place), _schema_file(schema))
            if place.exists()
            else None
        )
    if len(content["sources"]) > 1:
        raise PrivetError(
            f"This recipe has several sources ({', '.join(content['sources'])}): give --data the folder that holds them."
        )
    return Source(data, _schema_file(schema))


def _schema_file(schema: Mapping[str, Any] | None) -> str | None:
    """A recipe's words about a source as a schema file, kept under their content."""
    if not schema:
        return None
    return _kept(
        "schema.toml", "".join(f"{key} = {_toml(value)}\n" for key, value in schema.items())
    )


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
    return (
        str(value).lower()
        if isinstance(value, bool)
        else f'"{value}"'
        if isinstance(value, str)
        else str(value)
    )


def _content(name: str) -> dict[str, Any]:
    own = Path(name)
    try:
        if own.suffix == ".toml":
            text = own.expanduser().read_text(encoding="utf-8")
        elif name in names():
            text = (
                files("privet.studies.recipe_files")
                .joinpath(f"{name}.toml")
                .read_text(encoding="utf-8")
            )
        else:
            raise unknown("recipe", name, names())
        content = tomllib.loads(text)
    except OSError as error:
        raise PrivetError(f"Cannot read the recipe {name}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PrivetError(f"The recipe {name} is not TOML: {str(error).rstrip('.')}.") from None
    _check(content, name)
    return content


def _check(content: Mapping[str, Any], name: str) -> None:
    """Refuse what is not part of a recipe, or lacks what one needs."""
    _keys(content, _KEYS, {"title", "sources", "questions", "runs"}, name)
    _keys(content.get("small", {}), _SMALL, set(), name)
    fields = {
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
    for part in (content, content.get("small", {})):
        for key, (known, needed) in fields.items():
            for entry in part.get(key, ()):
                _keys(entry, known, needed, name)
    for made in (content, shrink(content)):
        for question in made["questions"]:
            for key in ("source", "on"):
                if key in question and question[key] not in made["sources"]:
                    raise unknown(f"source in the recipe {name}", question[key], made["sources"])


def _keys(entry: Any, known: set[str], needed: set[str], name: str) -> None:
    if not isinstance(entry, dict):
        raise PrivetError(
            f"The recipe {name} has something other than a table where one is needed."
        )
    for key in entry:
        if key not in known:
            raise unknown(f"key of the recipe {name}", key, known)
    absent: Sequence[str] = sorted(needed - set(entry))
    if absent:
        raise PrivetError(f"The recipe {name} lacks '{absent[0]}'.")
