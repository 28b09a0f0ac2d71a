"""Registries: tables of named things that other packages can add to.

An entry is a value, or the place of one as "module:attribute", imported when it is first asked
for. A package adds entries by entry points of the registry's group, a program by `register`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar, cast

from privet.core.errors import PrivetError, unknown

Value = TypeVar("Value")


class Registry(MutableMapping[str, Value], Generic[Value]):
    """Named values: those of Privet, those of installed packages, those a program registers.

    kind: what an entry is called in error messages.
    entries: Privet's own entries, by name.
    group: the entry point group through which installed packages add theirs.

    >>> shapes = Registry("shape", {"square": "math:pow"}, "example.shapes")
    >>> shapes.register("circle", abs)
    >>> list(shapes), shapes["square"](3, 2)
    (['square', 'circle'], 9.0)
    >>> shapes["triangle"]
    Traceback (most recent call last):
    privet.core.errors.PrivetError: There is no shape 'triangle'. Known: circle, square.
    """

    def __init__(self, kind: str, entries: Mapping[str, Value | str], group: str) -> None:
        self.kind, self.group = kind, group
        self.built_in = tuple(entries)
        """Names of Privet's own entries."""
        self._entries: dict[str, Value | str] = dict(entries)
        self._searched = False

    def register(self, name: str, value: Value | str) -> None:
        """Add an entry; a name that is taken is refused."""
        if name in self:
            raise PrivetError(f"There is a {self.kind} '{name}' already: choose another name.")
        self._entries[name] = value

    @property
    def from_outside(self) -> dict[str, Value]:
        """The entries that are not Privet's own."""
        return {name: self[name] for name in self if name not in self.built_in}

    def _search(self) -> None:
        if self._searched:
            return
        self._searched = True
        for point in entry_points(group=self.group):
            if point.name in self._entries:
                owner = point.dist.name if point.dist else "another package"
                raise PrivetError(
                    f"The package {owner} brings a {self.kind} '{point.name}', and there is one "
                    "of that name already: remove one of them."
                )
            self._entries[point.name] = point.value

    def __getitem__(self, name: str) -> Value:
        if name not in self._entries:
            self._search()
        if name not in self._entries:
            raise unknown(self.kind, name, self._entries)
        value = self._entries[name]
        if isinstance(value, str):
            module, _, attribute = value.partition(":")
            try:
                value = cast(Value, getattr(import_module(module), attribute))
            except (ImportError, AttributeError) as error:
                if name in self.built_in:
                    raise
                raise PrivetError(
                    f"The {self.kind} '{name}' of another package cannot be loaded: {error}."
                ) from None
            self._entries[name] = value
        return value

    def get(self, name: str, default: Any = None) -> Any:
        """The entry, or `default` where there is none of that name."""
        return self[name] if name in self else default  # noqa: SIM401

    def __setitem__(self, name: str, value: Value) -> None:
        self._entries[name] = value

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._entries:
            self._search()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        self._search()
        return iter(self._entries)

    def __len__(self) -> int:
        self._search()
        return len(self._entries)
