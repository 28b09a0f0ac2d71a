"""Private words: the law of the noise, the promise itself, the nearest word, statistics, files and
attacks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import typer
from letters import letters
from scipy.stats import gamma, kstest
from typer.testing import CliRunner

from privet.adversaries.linear import Logistic
from privet.auditing.batteries import BATTERIES, Battery
from privet.cli.words import mount
from privet.core.errors import PrivetError
from privet.data.word_vectors import UNKNOWN, Vocabulary
from privet.language.models.corpus import build_corpus
from privet.language.models.settings import Settings
from privet.language.models.train import train_model
from privet.language.private_words.attacks import PRIORS, Channel, attacker_texts, recover_words
from privet.language.private_words.files import WordAttack, audit_words, words_to
from privet.language.private_words.mechanism import NearestPoint, PrivateWords, unit_noise
from privet.language.private_words.priors import SETTINGS, Bigrams, LSTMPrior
from privet.language.private_words.statistics import (
    critical_epsilons,
    read_target,
    suggest_epsilon,
    word_statistics,
)
from privet.train.game import Run
from small import small

SIZE, WIDTH = 300, 12


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    random = np.random.default_rng(0)
    return Vocabulary.of([f"w{i}" for i in range(SIZE)], random.standard_normal((SIZE, WIDTH)))


def _words(path: Path, words: list[str], vectors: np.ndarray, in_bytes: bool = False) -> Path:
    cells = (
        [v.astype("<f2").tobytes() for v in vectors]
        if in_bytes
        else vectors.astype(np.float32).tolist()
    )
    pq.write_table(pa.table({"word": words, "vector": cells}), path)
    return path


# The noise.


def test_lengths_follow_gamma_and_directions_are_uniform() -> None:
    z = unit_noise(20_000, WIDTH, seed=1).astype(np.float64)
    length = np.linalg.norm(z, axis=1)
    assert kstest(length, gamma(WIDTH).cdf).pvalue > 1e-3
    direction = z / length[:, None]
    assert np.abs(direction.mean(0)).max() < 5 / np.sqrt(WIDTH * len(z))
    second = direction.T @ direction / len(z) * WIDTH
    assert np.abs(second - np.eye(WIDTH)).max() < 5 * np.sqrt(2 / len(z))
    assert abs(np.corrcoef(length, direction[:, 0])[0, 1]) < 5 / np.sqrt(len(z))


def test_a_seed_repeats_and_without_one_nothing_does(vocabulary: Vocabulary) -> None:
    words, codes = PrivateWords(vocabulary, 3.0), np.arange(1, SIZE)
    assert np.array_equal(words.change(codes, 7), words.change(codes, 7))
    assert not np.array_equal(words.change(codes, 7), words.change(codes, 8))
    assert not np.array_equal(words.change(codes), words.change(codes))


def test_without_a_seed_the_operating_system_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def zeros(n: int) -> bytes:
        asked.append(n)
        return bytes(range(256)) * (n // 256 + 1)

    monkeypatch.setattr("os.urandom", lambda n: zeros(n)[:n])
    assert np.array_equal(unit_noise(4, 3), unit_noise(4, 3))
    assert asked


# The mechanism.


@pytest.mark.parametrize("size", [1, 31, 300, 2500])
def test_the_nearest_is_the_one_that_brute_force_finds(size: int) -> None:
    random = np.random.default_rng(size)
    points, y = (
        random.standard_normal((size, 9)).astype(np.float32),
        random.standard_normal((700, 9)).astype(np.float32) * 2,
    )
    apart = np.linalg.norm(y[:, None].astype(np.float64) - points, axis=2)
    found = NearestPoint(points, torch.device("cpu"))(torch.from_numpy(y)).numpy()
    assert np.allclose(apart[np.arange(len(y)), found], apart.min(1), atol=1e-5)
    assert (found == apart.argmin(1)).mean() > 0.999


def test_the_promise_holds_between_all_pairs_of_words() -> None:
    """P(M(w) = u) <= exp(epsilon |v(w) - v(w')|) P(M(w') = u), up to what 60,000 draws can show;
    and it is not idle."""
    vocabulary = Vocabulary.of(["a", "b", "c"], np.array([[0.0, 0], [1, 0], [0, 2]]))
    epsilon, n = 1.0, 60_000
    words = PrivateWords(vocabulary, epsilon)
    shares = np.stack(
        [np.bincount(words.change(np.full(n, code), code), minlength=4) / n for code in range(4)]
    )
    error = 5 * np.sqrt(shares * (1 - shares) / n) + 1e-4
    apart = np.linalg.norm(vocabulary.points[:, None] - vocabulary.points, axis=2)
    bound = np.exp(epsilon * apart)[:, :, None]
    assert np.all(shares[:, None] - error[:, None] <= bound * (shares + error)[None])
    assert (shares[:, None] / shares[None]).max() > 1.5


def test_more_epsilon_more_words_stay(vocabulary: Vocabulary) -> None:
    codes = np.arange(1, SIZE + 1)
    stay = [
        (PrivateWords(vocabulary, epsilon).change(codes, 3) == codes).mean()
        for epsilon in (0.01, 5.0, 15.0, 1000.0)
    ]
    assert stay == sorted(stay) and stay[0] < 0.05 and stay[-1] == 1.0


def test_unknown_words_stand_at_the_mean_and_marks_go(vocabulary: Vocabulary) -> None:
    words = PrivateWords(vocabulary, 1e6)
    assert words.privatize(["W1, zebra; W2!", "", "...", None], seed=0) == [
        f"w1 {UNKNOWN} w2",
        "",
        "",
        "",
    ]
    codes, lengths = vocabulary.codes(["\u0645\u0631\u062d\u0628\u0627 w3 \U0001f600", "w4"])
    assert codes.tolist() == [0, 4, 5] and lengths.tolist() == [2, 1]
    assert np.allclose(vocabulary.points[0], vocabulary.points[1:].mean(0), atol=1e-6)
    changed = PrivateWords(vocabulary, 1.0).change(np.zeros(200, dtype=np.int64), 0)
    assert len(np.unique(changed)) > 50, "an unknown word becomes any word"


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_an_epsilon_must_be_a_number_above_zero(vocabulary: Vocabulary, epsilon: float) -> None:
    with pytest.raises(PrivetError, match="above 0"):
        PrivateWords(vocabulary, epsilon)


def test_vectors_are_read_from_bytes_and_from_lists(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).standard_normal((5, 4))
    read = [
        Vocabulary.read(_words(tmp_path / f"{b}.parquet", list("ABCDE"), vectors, b))
        for b in (False, True)
    ]
    assert read[0].words == tuple("abcde") and np.allclose(
        read[0].points, read[1].points, atol=1e-2
    )
    with pytest.raises(PrivetError, match="two vectors"):
        Vocabulary.of(["a", "A"], vectors[:2])
    pq.write_table(pa.table({"word": ["a"]}), tmp_path / "none.parquet")
    with pytest.raises(PrivetError, match="column of their vectors"):
        Vocabulary.read(tmp_path / "none.parquet")


# Statistics.


def test_a_critical_epsilon_says_at_which_a_word_stays(vocabulary: Vocabulary) -> None:
    codes, draws = np.arange(1, 41), 5
    noise = unit_noise(len(codes) * draws, WIDTH, 2).reshape(len(codes), draws, WIDTH)
    critical = critical_epsilons(vocabulary, codes, noise)
    nearest = NearestPoint(vocabulary.points, torch.device("cpu"))
    for factor, stays in ((1.01, True), (0.99, False)):
        y = vocabulary.points[codes][:, None] + noise / (factor * critical)[:, :, None]
        same = (
            nearest(torch.from_numpy(y.astype(np.float32).reshape(-1, WIDTH)))
            .numpy()
            .reshape(len(codes), draws)
            == codes[:, None]
        )
        assert np.all(same == stays)


def test_statistics_agree_with_each_other_and_a_target_is_met(vocabulary: Vocabulary) -> None:
    codes = np.repeat(np.arange(0, 60), np.arange(60, 0, -1))
    words = PrivateWords(vocabulary, 8.0)
    found = word_statistics(words, codes, most=50, draws=60)
    assert UNKNOWN not in found.words and len(found.words) == 50
    assert abs(found.stay_at(np.array([8.0]))[0] - found.stay) < 0.05
    assert np.all(found.distinct[found.stays < 1] > 1) and np.all(found.distinct <= 60)
    assert all(word not in own for word, own in zip(found.words, found.examples, strict=True))
    epsilon, reached = suggest_epsilon(words, codes, "stay=0.3", 50, 60)
    assert epsilon < 8.0 and abs(reached.stay - 0.3) < 0.05
    _, reached = suggest_epsilon(words, codes, "distinct=20", 20, 40)
    assert abs(reached.support - 20) < 2


@pytest.mark.parametrize(
    "target", ["stay", "stay=0", "stay=1", "stay=x", "distinct=1", "distinct=500", "go=0.3"]
)
def test_a_target_is_one_of_two(target: str) -> None:
    with pytest.raises(PrivetError, match=r"stay=0\.3"):
        read_target(target)


# The decoder.


def test_bigrams_sum_to_one_and_know_what_follows() -> None:
    prior = Bigrams.learn(np.array([1, 2, 1, 2, 1, 3, 0]), np.array([4, 0, 3]), 4)
    table = np.exp(prior.log(np.arange(5)[:, None], np.arange(4)[None]))
    assert np.allclose(table.sum(1), 1)
    assert table[1].argmax() == 2 and table[4].argmax() == 1


def test_the_channel_is_a_law_that_stays_as_often_as_the_mechanism(vocabulary: Vocabulary) -> None:
    words, codes = PrivateWords(vocabulary, 9.0), np.random.default_rng(0).integers(1, SIZE, 4000)
    channel = Channel.learn(words, codes, pairs=200)
    forth = torch.stack([channel.to(np.array([u]))[0] for u in range(len(vocabulary))])
    assert torch.allclose(forth.exp().sum(0), torch.ones(len(vocabulary)), atol=1e-3)
    stays = (words.change(codes, 5) == codes).mean()
    assert abs(float(forth.diagonal()[codes].exp().mean()) - stays) < 0.07


def test_a_language_model_recovers_more_words_than_stay(vocabulary: Vocabulary) -> None:
    """Texts in which every word follows from the one before: the context gives away what noise
    hid."""
    data = small("text", n=400)
    random = np.random.default_rng(0)
    starts = random.integers(0, 40, len(data))
    texts = np.array(
        [" ".join(f"w{(s + 3 * k) % 40}" for k in range(8)) for s in starts], dtype=object
    )
    found = {
        one.decoder: one.figures["words"]
        for one in recover_words(
            PrivateWords(vocabulary, 6.0), replace(data, records=texts), pairs=200
        )
    }
    alone, bigrams = found[PRIORS["released"]], found[PRIORS["bigrams"]]
    # Six seeds: bigrams.low at 0.95, alone.high at 0.90 to 0.94.
    assert bigrams.value > alone.high and bigrams.low > bigrams.chance
    nothing = recover_words(
        PrivateWords(vocabulary, 0.01), replace(data, records=random.permuted(texts)), pairs=100
    )
    assert nothing[-1].figures["words"].value < 0.05


LEARNER = replace(SETTINGS, width=48, epochs=20, batch=16, lr=1e-2, dropout=0.0)


def test_an_lstm_recovers_what_bigrams_cannot(vocabulary: Vocabulary) -> None:
    """Two chains by turns: every word follows from the one before the last, and the last one tells
    nothing."""
    data, random = small("text", n=400), np.random.default_rng(0)
    a, b = random.integers(0, 12, (2, len(data)))
    texts = np.array(
        [
            " ".join(f"w{3 * ((s if k % 2 else t) + 5 * (k // 2)) % 36}" for k in range(10))
            for s, t in zip(a, b, strict=True)
        ]
    )
    data, words = replace(data, records=texts.astype(object)), PrivateWords(vocabulary, 4.0)
    codes, lengths = attacker_texts(words, data)
    prior = LSTMPrior.learn(codes, lengths, len(vocabulary), settings=LEARNER, device="cpu")
    found = {
        one.decoder: one.figures["words"]
        for one in recover_words(words, data, pairs=100, lstm=prior)
    }
    assert list(found)[:2] == [PRIORS["lstm"], PRIORS["bigrams"]]
    assert found[PRIORS["lstm"]].low > found[PRIORS["bigrams"]].high


def test_without_a_prior_the_beam_takes_the_likeliest_word_of_every_place() -> None:
    random, size, lengths = np.random.default_rng(0), 30, np.array([3, 0, 1, 6])
    codes = random.integers(1, size, 40)
    prior = LSTMPrior.learn(
        codes, np.full(8, 5), size, settings=replace(LEARNER, epochs=1), device="cpu"
    )
    some = np.stack([random.permutation(np.arange(1, size))[:4] for _ in range(lengths.sum())])
    emitted = 50 * random.random(some.shape)
    nothing = np.zeros(len(some), dtype=np.int64)
    found = prior.decode(
        some, emitted, lengths, Bigrams.learn(codes, np.full(8, 5), size), 0.0, nothing
    )
    assert (found == np.take_along_axis(some, emitted.argmax(1)[:, None], 1)[:, 0]).mean() > 0.8
    assert all(word in row for word, row in zip(found, some, strict=True))
    unknown = prior.decode(
        0 * some, emitted, lengths, Bigrams.learn(codes, np.full(8, 5), size), 1.0, nothing + 7
    )
    assert (unknown == 7).all()


def test_a_model_of_lm_train_is_a_prior(tmp_path: Path) -> None:
    corpus, settings = build_corpus(letters(24)), Settings(width=8, vocabulary=200, epochs=1)
    for name in ("lstm", "subword"):
        (tmp_path / name).mkdir()
    train_model(corpus, settings, run=Run(progress=False, device="cpu")).save(tmp_path / "lstm")
    train_model(
        corpus,
        replace(settings, tokens="subword", vocabulary=300),
        run=Run(progress=False, device="cpu"),
    ).save(tmp_path / "subword")
    known = ["boat", "sea", "zebra"]
    words = Vocabulary.of(known, np.random.default_rng(0).standard_normal((3, 4)))
    prior = LSTMPrior.read(tmp_path / "lstm", words, np.array([1, 2, 3, 3]), "cpu")
    boat, sea, zebra = prior.token[1:].tolist()
    assert len({boat, sea, 1}) == 3 and zebra == prior.token[0] == 1
    assert prior.share[1] == 0 and np.isclose(float(prior.share[[0, 3]].exp().sum()), 1, atol=1e-5)
    with pytest.raises(PrivetError, match="--tokens word"):
        LSTMPrior.read(tmp_path / "subword", words, np.array([1]), "cpu")


# Files and the command line.


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    data = small("text", n=240)
    known = sorted({word for text in data.records for word in text.split()})
    vectors = _words(
        tmp_path / "vectors.parquet",
        known,
        np.random.default_rng(0).standard_normal((len(known), 6)),
        True,
    )
    columns = {
        "text": list(data.records),
        "u": data.labels["u"].tolist(),
        "y": data.labels["y"].tolist(),
    }
    pq.write_table(pa.table(columns), tmp_path / "texts.parquet")
    return tmp_path / "texts.parquet", vectors


def _run(*words: object) -> tuple[int, str]:
    app = typer.Typer(pretty_exceptions_enable=False)
    mount(app)
    done = CliRunner().invoke(app, [str(word) for word in words])
    if isinstance(done.exception, PrivetError):
        return 2, str(done.exception)
    return done.exit_code, done.output


def test_private_texts_are_written_without_their_labels(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    texts, vectors = files
    given = ("words", texts, "--vectors", vectors, "--device", "cpu")
    out, stats = tmp_path / "private.parquet", tmp_path / "stats"
    code, said = _run(*given, "--epsilon", 10, "--out", out, "--stats", stats, "--keep", "y")
    assert code == 0, said
    table, before = pq.read_table(out), pq.read_table(texts)
    assert table.column_names == ["text", "y"] and table.num_rows == 240
    lengths = [
        [len(text.split()) for text in t.column("text").to_pylist()] for t in (table, before)
    ]
    assert lengths[0] == lengths[1] and table.column("text") != before.column("text")
    assert json.loads(table.schema.metadata[b"privet"])["epsilon"] == 10
    assert pq.read_table(stats / "words.parquet").column_names[:4] == [
        "word",
        "count",
        "stays",
        "distinct",
    ]
    page = (stats / "words.html").read_text()
    assert "epsilon 10" in page and "<script" not in page and page.count("<svg") >= 4


def test_texts_in_a_csv_are_found_by_their_sentences(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    texts = pq.read_table(files[0]).to_pandas().rename(columns={"text": "said"})
    texts.assign(city=["Paris", "London"] * 120).to_csv(tmp_path / "a.csv", index=False)
    given = ("words", tmp_path / "a.csv", "--vectors", files[1], "--epsilon", 10)
    code, said = _run(*given, "--device", "cpu", "--out", tmp_path / "p.csv", "--keep", "city")
    assert code == 0, said
    private = pd.read_csv(tmp_path / "p.csv")
    assert list(private) == ["said", "city"] and len(private) == 240
    assert not private["said"].equals(texts["said"])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("--epsilon", "0"), "above 0"),
        ((), "--epsilon 10, or --target"),
        (("--epsilon", "ten"), "not a number"),
        (("--epsilon", "5", "--text", "u"), "no column of texts"),
        (("--epsilon", "5", "--keep", "v"), "--keep names 'v'"),
        (("--epsilon", "5,6"), "one --epsilon"),
        (("--target", "stay=2"), "between 0 and 1"),
    ],
)
def test_a_wrong_word_gets_a_sentence(
    files: tuple[Path, Path], tmp_path: Path, wrong: tuple[str, ...], said: str
) -> None:
    code, told = _run(
        "words", files[0], "--vectors", files[1], "--out", tmp_path / "new" / "p.parquet", *wrong
    )
    assert code == 2 and said in told
    assert not (tmp_path / "new").exists()


def test_attacks_read_less_at_a_small_epsilon(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        BATTERIES, "one", Battery((Logistic(strengths=(0.1,)),), (), (), people=False)
    )
    folder = tmp_path / "audit"
    points = audit_words(
        folder,
        files[0],
        files[1],
        [0.05, 100.0],
        WordAttack(private=["u"], utility=["y"], battery="one", device="cpu", progress=False),
    )
    assert [p.epsilon for p in points] == [0.05, 100.0]
    assert (
        points[0].private["u"].is_chance
        and points[1].private["u"].low > 0.8
        and points[1].utility["y"].low > 0.8
    )
    assert points[0].stays < 0.2 < 0.9 < points[1].stays
    told = json.loads((folder / "words.json").read_text())
    assert told["raw"]["u"]["value"] > 0.9 and len(told["points"]) == 2
    page = (folder / "words.html").read_text()
    assert "raw texts" in page and "What is not" in page
    report = (folder / "eps-0.05" / "report.html").read_text()
    assert "bigram" in report and "The release is deterministic" not in report


def test_an_empty_file_and_texts_without_words(files: tuple[Path, Path], tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["...", ""]}), tmp_path / "empty.parquet")
    with pytest.raises(PrivetError, match="no words"):
        words_to(tmp_path / "p.parquet", tmp_path / "empty.parquet", files[1], 5.0)
    with pytest.raises(PrivetError, match="Cannot read"):
        words_to(tmp_path / "p.parquet", tmp_path / "absent.parquet", files[1], 5.0)


def test_the_prior_is_chosen_by_a_word(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        BATTERIES, "one", Battery((Logistic(strengths=(0.1,)),), (), (), people=False)
    )
    monkeypatch.setattr("privet.language.private_words.priors.SETTINGS", replace(LEARNER, epochs=1))
    attack = WordAttack(
        private=["u"], battery="one", most=40, device="cpu", progress=False, prior="lstm"
    )
    (point,) = audit_words(tmp_path / "a", files[0], files[1], [20.0], attack)
    assert {PRIORS["lstm"], PRIORS["bigrams"]} <= set(point.recovered)
    with pytest.raises(PrivetError, match="neither bigrams nor lstm"):
        audit_words(tmp_path / "b", files[0], files[1], [20.0], replace(attack, prior="oracle"))
    assert not (tmp_path / "b").exists()
