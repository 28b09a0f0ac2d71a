"""Where people are a sample of a larger table: nobody may be in *test* of the sample whom the
release was learned from."""

from __future__ import annotations

from typing import Any

from privet.core.errors import refuse_if
from privet.data.dataset import Dataset


def refuse_learned_from(card: dict[str, Any], data: Dataset) -> None:
    """PrivetError where the release was learned on all of these files and the data is a sample of
    them, or the other way round: both deal people out over the parts in ways of their own, so that
    people of *fit* would be in *test*.

    Parameters:
        card: Of the release.
        data: What it is attacked or certified with.
    """
    learned = card.get("data")
    if not isinstance(learned, dict) or not data.content:
        return
    then, now = learned.get("sampled"), data.sampled
    dealt = (isinstance(then, dict) and then.get("dealt")) or (now is not None and now.dealt)
    refuse_if(
        dealt and learned.get("content") == data.content and (then is None) != (now is None),
        f"The release was learned on {'all' if then is None else 'a sample'} of these people, and "
        f"this is {'a sample' if then is None else 'all'} of them with other parts: people it was "
        "learned from would be in test. Give --people both to  privet learn  and here, or to none, "
        "or add a column split.",
    )
