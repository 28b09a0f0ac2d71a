"""What a column is about does not depend on how pandas keeps its cells."""

from __future__ import annotations

import pandas as pd
import pytest

from privet.data.column_meaning import is_text


@pytest.mark.parametrize("kind", ["object", "string[python]", "string[pyarrow]"])
@pytest.mark.parametrize(
    ("cells", "text"),
    [
        (["how are you", "quite well"], True),
        (["你好世界", "再见朋友"], True),
        (["a@b.org", "c-d"], False),
        (["über", "ähm"], False),
    ],
)
def test_sentences_are_seen_in_every_kind_of_column(kind: str, cells: list[str], text: bool):
    assert is_text(pd.Series(cells, dtype=kind)) is text
