"""Measures by their plain names, and figures in whatever unit they have.

What is not in the table is shown by its own words, `Figure.measure`, so that a new measure needs no
line here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from privet.evidence.figures import Figure
from privet.evidence.formatting import UNKNOWN, amount, between, empty, is_number, percent

# The name of a measure and what it says, for people who have not met it.
NAMES = {
    "f1": ("F1", "hits and false alarms in one number, the mean over values"),
    "tpr_at_fpr_1_percent": (
        "Found at 1 % false alarms",
        "share of those who have it that is found while 1 in 100 of the others is accused",
    ),
    "advantage": (
        "Gain over the most frequent value",
        "how many more records are guessed right than by always saying that one",
    ),
    "additive_leakage": ("Leak, added", "by how much its guesses raise the best blind guess"),
    "multiplicative_leakage": (
        "Leak, multiplied",
        "how many times as often as the best blind guess",
    ),
    "min_entropy_leakage": (
        "Leak in bits",
        "the same factor as bits: 1 bit doubles the success of a guess",
    ),
    "bayes_security": (
        "Bayes security",
        "share of the blind guess's errors that is left for the two values easiest to tell apart; "
        "1 is safe",
    ),
    "usable_bits": (
        "Bits this attacker can use",
        "what its probabilities tell about the attribute",
    ),
    "knn_bits": ("Bits, by nearest neighbours", "an estimate that needs no attacker"),
    "within_10_percent": ("Within a tenth", "share of guesses less than 10 % off the true number"),
    "rank_correlation": (
        "Rank correlation",
        "whether the guesses put people in the right order; 0 is no order",
    ),
    "highest_of_all": (
        "Highest of all",
        "the highest on the test part, its interval widened for the pick",
    ),
    "auc": ("AUC", "how often someone who has it is ranked above someone who does not"),
    "balanced_accuracy": ("Balanced accuracy", "both answers count the same"),
    "top_1": (
        "Found first",
        "share of people who are ranked first when another record of theirs is looked up",
    ),
    "top_5": ("Among the first five", "share of people who are among the first five"),
    "psnr": ("PSNR", "how loud the difference is; ordinary compressed pictures reach 30 to 50 dB"),
    "ssim": ("SSIM", "how alike local structure is; 1 is the same picture"),
    "ms_ssim": ("MS-SSIM", "the same over several sizes"),
    "variance_explained": (
        "Variance explained",
        "share of the differences between records that is rebuilt",
    ),
    "words": ("Words rebuilt", "share of words that are right"),
    "demographic_parity_difference": (
        "Answers",
        "how much more often the model gives an answer in one group than in another",
    ),
    "equalized_odds_difference": (
        "Mistakes",
        "how far its rates of right and wrong answers are apart between groups",
    ),
    "recall_at_10": ("Recall@10", "share of the ten nearest raw records found, queries released"),
    "ndcg_at_10": ("nDCG@10", "the same, what is nearest counting most"),
    "recall_at_10_raw_queries": ("Recall@10, raw queries", "raw query, released index"),
    "ndcg_at_10_raw_queries": ("nDCG@10, raw queries", "raw query, released index"),
    "drift": ("Drift", "mean cosine distance of a raw vector and its release; 0 is unmoved"),
    "cluster_agreement": (
        "Same clusters",
        "adjusted Rand index of clusters of raw and of released vectors; 1 is the same",
    ),
    "top_1_without_release": (
        "Found first, without the release",
        "by an attacker who does not have the release",
    ),
    "infonce": ("At least, by contrast (InfoNCE)", ""),
    "jensen_shannon": ("At least, by divergence (Jensen-Shannon)", ""),
    "jensen_shannon_bits": ("At least, by divergence (Jensen-Shannon)", ""),
    "gaussian_bound": ("At most, by the noise (Cloak's bound)", ""),
    "cloak_reduction": ("Share of the bits that is gone (Cloak)", ""),
}

# Measures that stand with the table of adversaries and not among what more there is to say about
# the strongest.
SCORES = ("highest_of_all",)

# Units that say nothing beside a number.
_PLAIN = ("", "1", "none", "ratio", "correlation", "times", "its own unit")

# Shares that people know as numbers from 0 to 1, and not as percentages.
_ON_THEIR_OWN = (
    "f1", "ssim", "ms_ssim", "bayes_security", "auc", "drift", "cluster_agreement",
)  # fmt: skip


def name(key: str, figure: Figure) -> str:
    """
    >>> figure = Figure(0.6, 0.5, 0.7, 9, 0.5, measure="something new")
    >>> name("f1", figure), name("new", figure)
    ('F1', 'Something new')
    """
    words = NAMES[key][0] if key in NAMES else figure.measure or key
    return words[:1].upper() + words[1:]


def notes(figures: Mapping[str, Figure]) -> tuple[str, dict[str, str]]:
    """What is to be known about all of them, said once, and what is left to say about each.

    >>> words = {"a": "Of the strongest.", "b": "Of the strongest. A bound."}
    >>> notes({key: Figure(0.6, 0.5, 0.7, 9, 0.5, note=note) for key, note in words.items()})
    ('Of the strongest.', {'a': '', 'b': 'A bound.'})
    """
    each = {
        key: re.split(r"(?<=[.!?])\s+(?=[A-Z])", figure.note) if figure.note else []
        for key, figure in figures.items()
    }
    counts = Counter(
        sentence for sentences in each.values() for sentence in dict.fromkeys(sentences)
    )
    shared = [
        sentence for sentence, count in counts.items() if len(each) > 1 and count > len(each) / 2
    ]
    return " ".join(shared), {
        key: " ".join(s for s in sentences if s not in shared) for key, sentences in each.items()
    }


def value(figure: Figure, key: str = "") -> str:
    """
    >>> value(Figure(0.6119, 0.6, 0.63, 9, 0.5)), value(Figure(14.21, 14, 15, 9, 11, unit="dB"))
    ('61.2 %', '14.2 dB')
    """
    if empty(figure):
        return UNKNOWN
    return written(figure, figure.value, key)


def ends(figure: Figure, key: str = "") -> str:
    """The interval, rounded outward; empty where there is none.

    >>> ends(Figure(0.034, 0.0211, 0.0512, 9, 0, unit="bits"))
    '0.0211 to 0.0512'
    """
    if (
        empty(figure)
        or not figure.interval
        or not (is_number(figure.low) and is_number(figure.high))
    ):
        return ""
    if _is_share(figure, key):
        return between(figure)
    like = 0.5 if figure.unit == "share" else 14.2 if figure.unit == "dB" else figure.value
    return f"{amount(figure.low, 'down', like)} to {amount(figure.high, 'up', like)}"


def _is_share(figure: Figure, key: str) -> bool:
    return figure.unit == "share" and key not in _ON_THEIR_OWN


def written(figure: Figure, number: float, key: str = "") -> str:
    """A number in the unit of a figure."""
    if not is_number(number):
        return "no finite number"
    if _is_share(figure, key):
        return f"{percent(number)} %"
    if figure.unit == "dB":
        return f"{number:.1f} dB"
    if figure.unit == "share":
        return amount(number, like=0.5)
    return amount(number, like=figure.value if number else None) + (
        "" if figure.unit in _PLAIN else f" {figure.unit}"
    )
