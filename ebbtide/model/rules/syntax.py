"""Texts whose syntax somebody else prescribes: a row for each, and one check that reads it."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from ebbtide.catalog import CloudKind
from ebbtide.model.cluster import Cluster
from ebbtide.model.faults import Fault
from ebbtide.model.rules.rule import ClusterRule, PoolIn, PoolRule

_Subject = TypeVar("_Subject", Cluster, PoolIn)

Texts = Iterable[tuple[str, str | None]]
"""Paths with what is written there; None for nothing."""


@dataclass(frozen=True, slots=True)
class Syntax(Generic[_Subject]):
    """Syntax of a text.

    Attributes:
        what: the text's name, as `cluster name`.
        whose: the system that requires it, as `GKE`.
        pattern: regular expression that the whole text matches.
        wants: the pattern in words.
        example: a valid text.
        consequence: the consequence of an invalid text.
        source: source of the syntax.
        texts: the paths of such texts.
        cloud: the cloud that it is for; None for both.
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
        """Name of the rule that the row makes."""
        return f"syntax: {self.whose} {self.what}"


def _quoted(text: str) -> str:
    """Format a text for a sentence: as it is, or in quotes if it would be ambiguous."""
    return text if re.fullmatch(r"[-\w@:/.]*[-\w]", text) else json.dumps(text, ensure_ascii=False)


def _check(row: Syntax[_Subject], subject: _Subject) -> Iterator[Fault]:
    for path, text in row.texts(subject):
        if text is not None and not re.fullmatch(row.pattern, text):
            problem = (
                f"{row.whose} takes no {row.what} {_quoted(text)}." if text else f"The {row.what} is empty."
            )
            yield Fault(path, problem, row.consequence, f"Write {row.wants}, such as {row.example}.")


def cluster_rules(*rows: Syntax[Cluster]) -> tuple[ClusterRule, ...]:
    """Return a rule for each row over the whole declaration."""
    return tuple(ClusterRule(row.rule_name, row.source, partial(_check, row), row.cloud) for row in rows)


def pool_rules(*rows: Syntax[PoolIn]) -> tuple[PoolRule, ...]:
    """Return a rule for each row over a pool."""
    return tuple(PoolRule(row.rule_name, row.source, partial(_check, row), row.cloud) for row in rows)
