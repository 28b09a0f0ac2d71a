"""The page about a dataset answers the five people that its template names."""

from __future__ import annotations

import html
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privet.data.in_memory import Dataset
from privet.data.portraits.source import portraits
from privet.data.sources import load
from privet.reporting.data_page import MOST_VALUES, render_data, write_data_page


def rows(n: int = 600) -> Dataset:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "height": np.where(random.random(n) < 0.1, np.nan, random.normal(170, 10, n)),
            "town": random.choice(["A", "B", "<b>C</b>"], n, p=[0.6, 0.3, 0.1]),
            "sex": random.choice(["f", "m"], n, p=[0.9, 0.1]),
            "income": random.integers(0, 2, n),
        }
    )
    return load(frame)


def words(page: str) -> str:
    part = page[page.index("<h1>") :]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", part)).split())


@pytest.mark.parametrize(
    "asked",
    [
        # Did it read my file right?
        r"was read as a table of 600 rows",
        # Is anything wrong with it?
        r"(Look at this first|Nothing was found wrong).*What can be hidden or kept",
        # Where are values missing?
        r"One column has missing values\..*height number .*mean 17\d 1?\d\.\d",
        # How many are like me?
        r"sex private binary f: \d+\.\d % m: \d+\.\d % f \d+\.\d %, m",
    ],
)
def test_people_find_their_answer(asked: str) -> None:
    assert re.search(asked, words(render_data(rows(), ["sex"], ["income"])))


def test_a_sheet_of_pictures_says_that_they_are_real(tmp_path: Path) -> None:
    write_data_page(tmp_path / "a.html", portraits(60, seed=0))
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == 12
    assert "These are real records" in page and "http" not in page.replace("http-equiv", "")


def test_words_of_the_data_are_escaped_and_many_values_share_a_line() -> None:
    assert "<b>C</b>" not in render_data(rows())
    many = pd.DataFrame(
        {"a": [f"v{i % 40}" for i in range(400)], "b": range(400), "c": [0, 1] * 200}
    )
    assert f"{40 - MOST_VALUES} more" in render_data(load(many))


def test_missing_values_are_those_of_the_data() -> None:
    data = rows()
    share = data.records["height"].isna().mean()
    assert f'data-label="Missing, %">{100 * share:.1f}<' in render_data(data)
