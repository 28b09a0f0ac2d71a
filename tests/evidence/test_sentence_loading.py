"""The table of sentences: every entry is whole, and nothing else can be said."""

from __future__ import annotations

from typing import get_args

import pytest

from privet.evidence.sentences import About, Per, say, table


def test_every_entry_says_when_it_may_be_printed_and_what_it_counts() -> None:
    for name, sentence in table().items():
        assert sentence.text and sentence.when, name
        assert sentence.about in get_args(About) and sentence.per in get_args(Per), name


@pytest.mark.parametrize(
    ("name", "fields"),
    [("nothing", {}), ("sure_alone", {}), ("sure_alone", {"sure": "99", "more": "1"})],
)
def test_unknown_names_and_wrong_fields_are_refused(name: str, fields: dict[str, str]) -> None:
    with pytest.raises(KeyError, match="sentence"):
        say(name, **fields)


def test_braces_in_a_field_stay_what_they_are() -> None:
    assert say("not_certified", reason="{what}") == "Not certified: {what}."
