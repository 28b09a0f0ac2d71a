"""An error is one sentence that says what to do."""

from __future__ import annotations

import tomllib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from privet.core.errors import EXTRAS, PrivetError, missing_extra, missing_package, unknown

WORDS = st.text("abcdefgh", min_size=1, max_size=8)


@given(WORDS, st.lists(WORDS, max_size=60))
def test_an_unknown_word_is_named_with_what_is_known(word: str, known: list[str]) -> None:
    error = unknown("method", word, known)
    said = str(error)
    assert isinstance(error, PrivetError)
    assert f"'{word}'" in said and "\n" not in said and said.endswith(".")
    assert all(name in said for name in sorted(known)[:40])
    assert ("none" in said) == (not known)


@given(WORDS, st.lists(WORDS, min_size=2, max_size=60))
def test_the_order_of_the_known_words_does_not_matter(word: str, known: list[str]) -> None:
    assert str(unknown("method", word, known)) == str(unknown("method", word, reversed(known)))


def test_a_slip_of_the_pen_is_put_right() -> None:
    assert "did you mean 'smiling'?" in str(unknown("attribute", "smilling", ["beard", "smiling"]))
    assert "did you mean" not in str(unknown("attribute", "zzz", ["beard", "smiling"]))


def test_a_long_list_is_cut() -> None:
    said = str(unknown("attribute", "x", [f"name{i:03}" for i in range(100)]))
    assert "name039, ..." in said and "name040" not in said


def test_a_missing_extra_says_how_to_get_it() -> None:
    assert (
        str(missing_extra("ray", "scale", "Running on a cluster"))
        == "Running on a cluster needs the package ray: install it with  pip install"
        " 'privet[scale]'."
    )


def test_every_package_is_in_the_extra_that_is_named() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    distributions = {"sklearn": "scikit-learn", "nacl": "pynacl"}
    for package, extra in EXTRAS.items():
        wanted = project["optional-dependencies"][extra]
        assert any(line.startswith(f"{distributions.get(package, package)}>=") for line in wanted)
    assert not any(line.startswith("torch") for line in project["dependencies"])


def test_a_missing_package_that_no_extra_has_stays_what_it_is() -> None:
    error = ModuleNotFoundError("No module named 'nowhere'", name="nowhere")
    assert missing_package(error) is error
