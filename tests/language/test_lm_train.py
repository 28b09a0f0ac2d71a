"""Training learns, resumes to the same weights, and comes back from disk; DP-SGD spends no more
than it may."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from letters import letters

from privet.core.errors import PrivetError
from privet.language.model_audit.exposure import exposures
from privet.language.model_audit.speed import measure
from privet.language.models.canaries import CanaryPlan
from privet.language.models.corpus import Corpus, build_corpus
from privet.language.models.networks import row_nats, scores_of
from privet.language.models.settings import PrivacyBudget, Settings
from privet.language.models.train import TrainedModel, tokenizer_for, train_model, training_rows
from privet.train.game import Run

TINY = Settings(width=16, vocabulary=300, longest=24, epochs=2, batch=16, lr=1e-2, dropout=0.1)
QUIET = Run(progress=False, device="cpu")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return build_corpus(letters(16), authors=6)


@pytest.mark.parametrize("regularizer", ["none", "adversarial:1", "triplet:1"])
@pytest.mark.parametrize("model", ["lstm", "gpt"])
def test_a_model_learns_and_comes_back_from_disk(
    corpus: Corpus, regularizer: str, model: str, tmp_path: Path
) -> None:
    made = train_model(corpus, replace(TINY, model=model).with_regularizer(regularizer), run=QUIET)
    history = [row["held-out perplexity"] for row in made.card["history"]]
    # After the first epoch a seed may be near guessing: 47 to 49 where the vocabulary has 49.
    assert history[-1] < min(history[0], made.tokenizer.vocabulary)
    assert made.card["held_out_perplexity"] == pytest.approx(min(history), rel=1e-3)
    assert ("author guessed" in made.card["history"][0]) == (regularizer == "adversarial:1")
    made.save(tmp_path)
    again = TrainedModel.load(tmp_path)
    ids = training_rows(corpus, TINY, made.tokenizer)[0]
    assert np.allclose(
        *(row_nats(scores_of(one.model), ids, torch.device("cpu")) for one in (made, again))
    )
    (tmp_path / "model.safetensors").write_bytes(b"other")
    with pytest.raises(PrivetError, match="not the ones"):
        TrainedModel.load(tmp_path)


def test_a_run_that_was_stopped_ends_in_the_same_weights(corpus: Corpus, tmp_path: Path) -> None:
    settings = TINY.with_regularizer("adversarial:1")
    whole = train_model(corpus, settings, run=QUIET)
    run = replace(QUIET, folder=tmp_path, rounds_between=3)
    train_model(corpus, settings, run=run)
    assert (tmp_path / "checkpoint.safetensors").exists()
    resumed = train_model(corpus, settings, run=replace(run, resume=True))
    for a, b in zip(
        whole.model.state_dict().values(), resumed.model.state_dict().values(), strict=True
    ):
        assert torch.equal(a, b)
    with pytest.raises(PrivetError, match="other settings"):
        train_model(corpus, replace(settings, seed=1), run=replace(run, resume=True))


def test_a_sentence_planted_often_is_remembered(corpus: Corpus) -> None:
    canaries = CanaryPlan(2, (0, 30), ["the key is # #"]).draw(corpus.authors("known"))
    made = train_model(corpus, replace(TINY, epochs=10, width=32, dropout=0.0), canaries, run=QUIET)
    found = exposures(
        canaries,
        made.tokenizer,
        lambda ids: row_nats(scores_of(made.model), ids, torch.device("cpu")),
    )
    planted, never = (
        [one.bits for one in found if one.canary.repeats == often] for often in (30, 0)
    )
    # Six seeds: the second of 100 at worst.
    assert min(planted) >= np.log2(100 / 5) and min(planted) > max(never)


def test_the_speed_of_a_regulariser_is_a_share_of_the_plain_ones(corpus: Corpus) -> None:
    tokenizer = tokenizer_for(corpus, TINY)
    ids, author = training_rows(corpus, TINY, tokenizer)
    speed = measure(
        TINY.with_regularizer("triplet:1,batch=5"),
        TINY,
        ids,
        author,
        tokenizer.vocabulary,
        torch.device("cpu"),
        steps=3,
        turns=2,
    )
    # How fast either is depends on what else the machine does: only the ratio is checked.
    assert speed.tokens_per_second > 0 and speed.plain > 0
    assert speed.ratio == pytest.approx(speed.tokens_per_second / speed.plain)


@pytest.mark.parametrize("model", ["lstm", "gpt"])
def test_dp_spends_what_it_may_and_resumes(corpus: Corpus, model: str, tmp_path: Path) -> None:
    pytest.importorskip("opacus")
    settings = replace(TINY, model=model, epochs=1, width=8).with_regularizer("dp:4")
    made = train_model(corpus, settings, run=replace(QUIET, folder=tmp_path, rounds_between=1))
    spent = made.card["dp"]
    assert 3 < spent["epsilon"] <= 4.001 and spent["noise"] > 0
    # The last checkpoint was written after the last step: nothing is left to do, and the weights
    # are the same.
    again = train_model(corpus, settings, run=replace(QUIET, folder=tmp_path, resume=True))
    for a, b in zip(
        made.model.state_dict().values(), again.model.state_dict().values(), strict=True
    ):
        assert torch.equal(a, b)


def test_an_epsilon_of_zero_and_other_wrong_words_are_refused() -> None:
    for wrong in ("dp:0", "dp:-1", "dp:nan", "dp:inf"):
        with pytest.raises(PrivetError, match="epsilon"):
            TINY.with_regularizer(wrong)
    with pytest.raises(PrivetError, match="no regularizer"):
        TINY.with_regularizer("laplace:1")
    with pytest.raises(PrivetError, match="strength"):
        TINY.with_regularizer("triplet:much")
    with pytest.raises(PrivetError, match="above 0"):
        TINY.updated(["width=0"])
    with pytest.raises(PrivetError, match="no setting 'widht'"):
        TINY.updated(["widht=3"])
    with pytest.raises(PrivetError, match="takes a whole number"):
        TINY.updated(["width=wide"])
    with pytest.raises(PrivetError, match="delta"):
        PrivacyBudget(epsilon=1, delta=0, clip=1, rate=0.1, steps=1)
