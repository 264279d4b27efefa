"""Rules for strings with a prescribed syntax: one row each, and a common check."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import ClusterRule, PoolIn, PoolRule

_Subject = TypeVar("_Subject", Cluster, PoolIn)

Texts = Iterable[tuple[str, str | None]]
"""Paths with the written strings; None if nothing is written."""


@dataclass(frozen=True, slots=True)
class Syntax(Generic[_Subject]):
    """Syntax of a string.

    Attributes:
        what: name of the string, such as `cluster name`.
        whose: system that requires the syntax, such as `GKE`.
        pattern: regular expression for the whole string.
        wants: the pattern in words.
        example: a valid string.
        consequence: consequence of an invalid string.
        source: source of the syntax.
        texts: yields the paths of such strings.
        cloud: cloud that it applies to; None for both.
    """

    what: str
    whose: str
    pattern: str
    wants: str
    example: str
    consequence: str
    source: str
    texts: Callable[[_Subject], Texts]
    cloud: CloudKind | None = None

    @property
    def rule_name(self) -> str:
        """Name of the row's rule."""
        return f"syntax: {self.whose} {self.what}"


def _quoted(text: str) -> str:
    """Format a string for messages: as it is, or in quotes if it would be ambiguous."""
    return text if re.fullmatch(r"[-\w@:/.]*[-\w]", text) else json.dumps(text, ensure_ascii=False)


def _check(row: Syntax[_Subject], subject: _Subject) -> Iterator[Fault]:
    for path, text in row.texts(subject):
        if text is not None and not re.fullmatch(row.pattern, text):
            problem = (
                f"{_quoted(text)} is not a valid {row.whose} {row.what}."
                if text
                else f"The {row.what} is empty."
            )
            yield Fault(path, problem, row.consequence, f"Write {row.wants}, such as {row.example}.")


def cluster_rules(*rows: Syntax[Cluster]) -> tuple[ClusterRule, ...]:
    """Return a rule for the whole declaration for each row."""
    return tuple(ClusterRule(row.rule_name, row.source, partial(_check, row), row.cloud) for row in rows)


def pool_rules(*rows: Syntax[PoolIn]) -> tuple[PoolRule, ...]:
    """Return a rule for a pool for each row."""
    return tuple(PoolRule(row.rule_name, row.source, partial(_check, row), row.cloud) for row in rows)
