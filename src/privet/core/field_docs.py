"""Docstrings of dataclass fields, which Python keeps in the source only."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise


def field_docs(kind: type) -> dict[str, str]:
    """The docstring below each field of a class, on one line; empty where there is no source."""
    try:
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, TypeError):
        return {}
    return {
        field.target.id: " ".join(below.value.value.split())
        for field, below in pairwise(body.body if isinstance(body, ast.ClassDef) else [])
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }
