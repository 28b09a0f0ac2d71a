"""How many bits: what an adversary could use, estimates of mutual information, and a bound on it.

Each estimate says beside its number what the number cannot show. None of them but `gaussian_bound`
limits what a better adversary would find.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.spatial import cKDTree
from scipy.special import digamma

from privet.evidence import Array
from privet.evidence.leakage import as_codes, as_probabilities


@dataclass(frozen=True)
class Information:
    """A number of bits and what it is worth.

    Parameters:
        value: Never negative, and never more than the method can show.
        raw: What was measured before that; below 0 where the adversary did worse than the prior or
            the estimate is all error.
        n: Records it was measured on; 0 says that nothing was, and then `value` means nothing.
        limit: What is known to be wrong with this number, in one sentence.
        cap: The highest value that this method could have given on this data, where there is one.
    """

    value: float
    raw: float
    n: int
    limit: str
    cap: float | None = None
    unit: str = "bits"


def usable_bits(
    truth: npt.ArrayLike, probabilities: npt.ArrayLike, smoothing: float = 1e-6
) -> Information:
    """Prior entropy minus held-out log-loss: the bits about the label that this adversary can use.

    With q the shares of the k labels in `truth` and p the probabilities (n, k) given on records
    nobody learned from::

        raw = - sum_c q_c log2 q_c + 1/n sum_i log2 p'_i(truth_i),     p' = (1 - e) p + e / k

    The mixture with e = `smoothing` is an adversary that is never quite sure: without it one
    saturated wrong answer makes the log-loss infinite. It costs a perfect adversary 1.5 e bits. The
    cap is the prior entropy.

    Source: Xu, Zhao, Song, Stewart and Ermon, A theory of usable information under computational
    constraints, ICLR (2020).

    >>> round(usable_bits([0, 1], [[1, 0], [0, 1]]).value, 4), usable_bits(
    ...     [0, 1], [[0.1, 0.9], [0.9, 0.1]]
    ... ).value
    (1.0, 0.0)
    """
    codes, table = as_codes(truth), as_probabilities(probabilities)
    assert len(table) == len(codes), (
        f"{len(codes)} labels do not go with probabilities of shape {table.shape}."
    )
    assert codes.max(initial=-1) < table.shape[1], (
        f"A label is {codes.max()}, but the probabilities know only {table.shape[1]} classes."
    )
    assert 0 <= smoothing < 1, f"Smoothing lies between 0 and 1, {smoothing} does not."
    entropy = _entropy(codes)
    with np.errstate(
        divide="ignore"
    ):  # without smoothing a probability of 0 is an infinite loss, and is meant to be
        logs = np.log2(
            (1 - smoothing) * table[np.arange(len(codes)), codes]
            + smoothing / max(table.shape[1], 1)
        )
    raw = entropy + float(logs.mean()) if len(codes) else 0.0
    limit = (
        "Lower bound: what this one adversary can use; a stronger or better calibrated one may use"
        " more."
    )
    return Information(_between(raw, entropy), raw, len(codes), limit, entropy)


def knn_information(x: npt.ArrayLike, label: npt.ArrayLike, k: int = 3) -> Information:
    """Mutual information of vectors (n, d) and a label, from distances to the k-th neighbour with
    the same label.

    With N records, N_i that share the label of record i, r_i its distance (largest coordinate
    difference, coordinates scaled to unit deviation) to its k-th neighbour among those, and m_i the
    records of any label that lie closer, itself counted::

        raw = psi(N) - mean psi(N_i) + mean psi(k_i) - mean psi(m_i)      (in nats)

    k_i is k, or N_i - 1 where that is less. Where r_i = 0 (repeated vectors) k_i is the number of
    records with the same label and the same vector, as Gao et al. do, so that a release of few
    values is measured as well. Records whose label occurs once are left out. The cap is the entropy
    of the labels.

    Sources: Ross, Mutual information between discrete and continuous data sets, PLoS ONE 9 (2014),
    e87357; Gao, Kannan, Oh and Viswanath, Estimating mutual information for discrete-continuous
    mixtures, NeurIPS (2017).

    >>> label = np.arange(200) % 2
    >>> round(knn_information(label[:, None], label).value, 6), knn_information(
    ...     np.zeros((200, 1)), label
    ... ).value
    (1.0, 0.0)
    """
    codes, points = as_codes(label), np.asarray(x, dtype=np.float64)
    assert points.ndim == 2 and len(points) == len(codes), (
        f"{len(codes)} labels do not go with vectors of shape {points.shape}."
    )
    assert np.isfinite(points).all(), "A vector holds something that is not a finite number."
    assert k >= 1, f"There is no {k}-th neighbour."
    limit = (
        "Estimate, not a bound: in more than about ten dimensions, or beyond about log2(n) bits, it"
        " falls far short of the truth."
    )
    sizes = np.bincount(codes, minlength=1)[codes]
    codes, points, sizes = codes[sizes > 1], points[sizes > 1], sizes[sizes > 1]
    entropy = _entropy(codes)
    if not len(codes):
        return Information(0.0, 0.0, 0, limit, 0.0)
    points = points[:, np.ptp(points, axis=0) > 0]
    if not points.shape[1] or (sizes == len(codes)).all():
        return Information(
            0.0, 0.0, len(codes), limit, entropy
        )  # one value, or one label: there is nothing to tell
    points = points / points.std(0)
    radius, nearest = np.empty(len(codes)), np.minimum(k, sizes - 1)
    for code in np.unique(codes):
        own = codes == code
        tree, neighbours = cKDTree(points[own]), int(nearest[own][0])
        radius[own] = tree.query(points[own], [neighbours + 1], p=np.inf)[0][
            :, 0
        ]  # the first neighbour is the record itself
        same = own & (radius == 0)
        if same.any():
            nearest[same] = tree.query_ball_point(points[same], 0, p=np.inf, return_length=True)
    # The next smaller float leaves out the k-th neighbour, which counting the record itself makes
    # up for.
    closer = cKDTree(points).query_ball_point(
        points, np.nextafter(radius, 0), p=np.inf, return_length=True
    )
    nats = digamma(len(codes)) + (digamma(nearest) - digamma(sizes) - digamma(closer)).mean()
    raw = float(nats / np.log(2))
    return Information(_between(raw, entropy), raw, len(codes), limit, entropy)


def infonce_bound(scores: npt.ArrayLike) -> Information:
    """InfoNCE: a lower bound on I(X; Y) from scores s_ij of x_i with y_j, true pairs on the
    diagonal.

    ``raw = 1/n sum_i log2( exp(s_ii) / (1/n sum_j exp(s_ij)) )``, which cannot exceed the cap log2
    n.

    The critic that gives the scores must not have been trained on these records.

    Sources: van den Oord, Li and Vinyals, Representation learning with contrastive predictive
    coding, arXiv:1807.03748; Poole, Ozair, van den Oord, Alemi and Tucker, On variational bounds of
    mutual information, ICML (2019).

    >>> found = infonce_bound(np.eye(8) * 50)
    >>> round(found.value, 6), found.cap, infonce_bound(np.zeros((8, 8))).value
    (3.0, 3.0, 0.0)
    """
    table = _square(scores)
    n = len(table)
    cap = float(np.log2(n)) if n else 0.0
    raw = (
        float((table.diagonal() - np.logaddexp.reduce(table, axis=1)).mean() / np.log(2)) + cap
        if n
        else 0.0
    )
    limit = (
        "Lower bound, on average over samples, by this critic; it cannot show more than log2 n ="
        f" {cap:.2f} bits however much there is."
    )
    return Information(_between(raw, cap), raw, n, limit, cap)


def jensen_shannon_bound(scores: npt.ArrayLike) -> Information:
    """A lower bound on I(X; Y) by way of the Jensen-Shannon divergence of true pairs and mixed
    pairs.

    With scores s_ij of x_i with y_j (the best critic's is ln p(x, y) / p(x) p(y)), true pairs on
    the diagonal, and S the logistic function, the divergence is at least, in bits::

        raw = 1 + 1/2 mean over i of log2 S(s_ii) + 1/2 mean over i != j of log2 S(-s_ij)

    Of all pairs of distributions with that divergence the least Kullback-Leibler divergence has
    P(A) = 1, Q(A) = t for some event A, so that the bound is -log2 t where ``1 + (t log2 t - (1 +
    t) log2(1 + t)) / 2 = raw``. The value is cut at log2 n: no sample of n can vouch for much more
    (McAllester and Stratos). `raw` is the divergence, not the bound.

    Sources: Nowozin, Cseke and Tomioka, f-GAN, NeurIPS (2016); Dorent, Golland and Wells,
    Connecting Jensen-Shannon and Kullback-Leibler divergences, arXiv:2510.20644; McAllester and
    Stratos, Formal limitations on the measurement of mutual information, AISTATS (2020).

    >>> jensen_shannon_bound(np.eye(8) * 200 - 100).value, jensen_shannon_bound(
    ...     np.zeros((8, 8))
    ... ).value
    (3.0, 0.0)
    """
    table = _square(scores)
    n = len(table)
    limit = (
        "Lower bound, on average over samples, by this critic; it stays below the truth even for"
        " the best critic."
    )
    if n < 2:
        return Information(0.0, 0.0, 0, limit, 0.0)  # there are no mixed pairs to compare with
    mixed = table[~np.eye(n, dtype=bool)]
    loss = np.logaddexp(0, -table.diagonal()).mean() + np.logaddexp(0, mixed).mean()
    raw, cap = 1 - float(loss) / 2 / float(np.log(2)), float(np.log2(n))
    return Information(least_bits(raw, cap), raw, n, limit, cap)


def least_bits(divergence: float, cap: float) -> float:
    """The least Kullback-Leibler divergence, up to `cap`, that goes with a Jensen-Shannon
    divergence, both in bits.

    >>> least_bits(0.0, 9.0), round(
    ...     least_bits(1 + (-0.5 - 1.5 * np.log2(1.5)) / 2, 9.0), 6
    ... ), least_bits(1.0, 9.0)
    (0.0, 1.0, 9.0)
    """

    def shown(bits: float) -> float:
        t = 2.0**-bits
        return float(1 + (-bits * t - (1 + t) * np.log1p(t) / np.log(2)) / 2)

    if divergence <= 0:
        return 0.0
    return (
        cap
        if divergence >= shown(cap)
        else float(brentq(lambda bits: shown(bits) - divergence, 0.0, cap, xtol=1e-12))
    )


def gaussian_bound(covariance: npt.ArrayLike, noise: npt.ArrayLike) -> Information:
    """Cloak's upper bound on I(x; x + r), where r is fresh independent Gaussian noise of deviation
    sigma_j on coordinate j.

    Whatever the law of x, a Gaussian x of the same covariance K tells at least as much::

        I <= 1/2 sum_i log2(1 + l_i),    l_i the eigenvalues of D K D,    D = diag(1 / sigma_j)

    With the same sigma everywhere l_i = lambda_i / sigma^2, lambda_i the eigenvalues of K, which is
    how Cloak states it. With different sigmas no order of lambda_i / sigma_i^2 is exact, and some
    lie below the truth (a test shows one): hence this form. A coordinate that varies and gets no
    noise makes it infinite; one that does not vary tells nothing.

    Source: Mireshghallah, Taram, Jalali, Elthakeb, Tullsen and Esmaeilzadeh, Not all features are
    equal, WWW (2021), arXiv:2003.12154, with Cover and Thomas, Elements of information theory, 2nd
    ed., theorem 8.6.5.

    >>> gaussian_bound(np.eye(3), [1, 1, 1]).value, gaussian_bound(
    ...     np.eye(2), [1, 0]
    ... ).value, gaussian_bound(np.zeros((2, 2)), [0, 0]).value
    (1.5, inf, 0.0)
    """
    table, scales = np.asarray(covariance, dtype=np.float64), np.asarray(noise, dtype=np.float64)
    assert table.ndim == 2 and table.shape == 2 * scales.shape, (
        f"Noise of shape {scales.shape} does not go with {table.shape}."
    )
    assert np.isfinite(table).all() and np.isfinite(scales).all(), (
        "A covariance or a noise scale is not a finite number."
    )
    assert (scales >= 0).all(), "A noise scale is negative."
    assert np.allclose(table, table.T), "A covariance is symmetric."
    limit = (
        "Upper bound for one release with fresh noise, exact for Gaussian data, and only as right"
        " as the covariance it was given."
    )
    varies = table.diagonal() > 0
    if (scales[varies] == 0).any():
        return Information(np.inf, np.inf, len(scales), limit)
    ratios = np.linalg.eigvalsh(
        table[np.ix_(varies, varies)] / np.outer(scales[varies], scales[varies])
    )
    assert ratios.min(initial=0) >= -1e-6 * max(ratios.max(initial=0), 1e-300), (
        "A covariance has no negative eigenvalues."
    )
    bits = float(np.log1p(np.maximum(ratios, 0)).sum() / 2 / np.log(2))
    return Information(bits, bits, len(scales), limit)


def reduction(before: Information, after: Information) -> float | None:
    """Cloak's figure: the share of the bits that is gone, 1 - after / before; None where there was
    nothing, or no end.

    >>> round(
    ...     reduction(
    ...         gaussian_bound(np.eye(4), np.full(4, 0.5)),
    ...         gaussian_bound(np.eye(4), np.full(4, 2.0)),
    ...     ),
    ...     3,
    ... )
    0.861
    """
    return 1 - after.value / before.value if 0 < before.value < np.inf else None


def _between(raw: float, cap: float) -> float:
    return min(max(raw, 0.0), cap)


def _entropy(codes: Array) -> float:
    """Entropy in bits of the shares that were counted."""
    counts = np.bincount(codes)
    shares = counts[counts > 0] / max(len(codes), 1)
    return float(-(shares * np.log2(shares)).sum()) + 0.0


def _square(scores: npt.ArrayLike) -> Array:
    table = np.asarray(scores, dtype=np.float64)
    assert table.ndim == 2 and table.shape[0] == table.shape[1], (
        f"Scores of n records with n partners are square, not {table.shape}."
    )
    assert np.isfinite(table).all(), "A score is not a finite number."
    return table
