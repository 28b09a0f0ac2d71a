"""Privet's methods as scikit-learn estimators: `Privatizer` fits into a Pipeline, a
ColumnTransformer and a grid search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from privet.core.settings import names
from privet.data.arrow_encoding import standardised
from privet.data.dataset import PARTS, Array, Dataset
from privet.data.in_memory import as_frame
from privet.data.schema import Schema, TableSchema
from privet.data.stream import encoded_rows, record_column
from privet.data.tables import from_frame
from privet.methods.certified import CertifiedMethod
from privet.methods.leace import LEACE
from privet.methods.method import Method
from privet.release.graph import export
from privet.release.release import Release
from privet.release.runtime import session
from privet.train.game import Run

# What the columns of labels are called that come beside X.
PRIVATE, TASK = "private", "task"
# Networks with fewer weights run nearly as fast in torch as in a graph, which takes a second to
# export.
FEW_WEIGHTS = 1 << 16

_SESSIONS: WeakKeyDictionary[Release, Any] = WeakKeyDictionary()
_LOADING = Lock()


class Privatizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A method of Privet as a transformer: `fit` learns a release, `transform` runs it.

    Where `private` names columns of X, these are hidden and are no input, and y, where it is given,
    is the task. Without it, y is what is hidden, as in other libraries for concept erasure.

    Parameters:
        method: The method with its settings; LEACE where none is given. Its own settings are
            parameters too: `method__target`.
        private: Names of the columns of X to hide; None where y is what is hidden.
        utility: Names of the columns of X that are tasks: they are no input either.
        random_state: Makes the noise of `transform` repeatable. Leave it None where what comes out
            is shared: then every call draws fresh noise.

    Attributes:
        release_: The learned release, which can be saved, audited and certified.
        n_features_in_: How many columns X had.
        feature_names_in_: Their names, where X had names.

    Example:
        >>> import numpy as np
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> random = np.random.default_rng(0)
        >>> sex = np.arange(400) % 2
        >>> X = random.normal(size=(400, 3)) + sex[:, None]
        >>> Z = Privatizer().fit(X, sex).transform(X)
        >>> reader = LogisticRegression().fit(Z, sex)
        >>> bool(reader.score(Z, sex) < 0.6 < LogisticRegression().fit(X, sex).score(X, sex))
        True
    """

    def __init__(
        self,
        method: Method | None = None,
        private: str | Sequence[str] | None = None,
        utility: str | Sequence[str] = (),
        random_state: int | None = None,
    ) -> None:
        self.method = method
        self.private = private
        self.utility = utility
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Privatizer:
        """Learn the release from all rows; a method with a certificate keeps some of them apart to
        choose its noise."""
        frame, labels = self._checked(X, y)
        method = LEACE() if self.method is None else clone(self.method, safe=False)
        tasks = names(self.utility)
        if self.private is None:
            private, columns = [PRIVATE], {PRIVATE: labels}
        else:
            private, columns = names(self.private), {TASK: labels} if labels is not None else {}
        if TASK in columns:
            tasks = [*tasks, TASK]
        data = self._all_to_fit(from_frame(frame.assign(**columns)), method)
        self.release_ = method.fit(data, private, tasks, run=Run(progress=False))
        if sum(t.numel() for t in self.release_.module.state_dict().values()) > FEW_WEIGHTS:
            self.release_.graph = export(self.release_)
        self._n_features_out = int(np.prod([size or 0 for size in self.release_.shape]))
        return self

    def transform(self, X: Any) -> Any:
        """What leaves of these rows: an array, or a frame where `set_output` asks for one. Numbers
        are of the type of those of X where these are all float32, else float64."""
        check_is_fitted(self, "release_")
        frame, _ = self._checked(X, None, reset=False)
        x = _encoded(self.release_.schema, frame)
        z = self.release_(x, self.random_state, run=_session(self.release_))
        single = all(kind == np.float32 for kind in frame.dtypes)
        return z.reshape(len(z), -1).astype(np.float32 if single else np.float64, copy=False)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of what leaves: z0, z1, ..."""
        check_is_fitted(self, "release_")
        return np.array([f"z{i}" for i in range(self._n_features_out)], dtype=object)

    def _checked(
        self, X: Any, y: Any, reset: bool = True
    ) -> tuple[pd.DataFrame, np.ndarray[Any, Any] | None]:
        """X as a frame, after scikit-learn's own checks where it is an array of numbers."""
        if isinstance(X, pd.DataFrame) and not all(
            pd.api.types.is_numeric_dtype(kind) for kind in X.dtypes
        ):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X, None if y is None else np.asarray(y)
        named = list(map(str, X.columns)) if isinstance(X, pd.DataFrame) else None
        if reset and self.private is None:
            X, y = validate_data(self, X, y, reset=True, ensure_min_samples=2)
        else:
            X = validate_data(self, X, reset=reset)
        numbers = np.asarray(X)
        if reset or numbers.dtype != np.float32:
            numbers = np.asarray(numbers, dtype=np.float64)
        frame = as_frame(numbers)
        return frame if named is None else frame.set_axis(named, axis=1), y

    @staticmethod
    def _all_to_fit(data: Dataset, method: Method) -> Dataset:
        """All rows are learned from, unless the method chooses something on people apart."""
        if isinstance(method, CertifiedMethod):
            return data
        return replace(data, part_of=np.full_like(data.part_of, PARTS.index("fit")))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.private is None
        tags.target_tags.one_d_labels = True
        tags.non_deterministic = self.random_state is None and self.method is not None
        tags.input_tags.allow_nan = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _encoded(schema: Schema, frame: pd.DataFrame) -> Array:
    """Rows of a frame as the release's input; of numbers all columns at once."""
    if isinstance(schema, TableSchema) and not any(column.values for column in schema.columns):
        wanted = [column.name for column in schema.columns]
        if set(wanted) <= set(frame.columns) and all(k.kind in "fiu" for k in frame[wanted].dtypes):
            chosen = frame if list(frame.columns) == wanted else frame[wanted]
            return standardised(schema, chosen.to_numpy())
    frame = frame.reset_index(drop=True).rename(columns=str)
    column = record_column(schema.plain, frame, "X")
    return encoded_rows(schema, frame, (), column, "X")[0]


def _session(release: Release) -> Any:
    """A session of a release's graph, made once; None where it has none, and torch runs it."""
    if release.graph is None:
        return None
    with _LOADING:
        if release not in _SESSIONS:
            _SESSIONS[release] = session(release.graph, torch.get_num_threads())
        return _SESSIONS[release]
