"""Required values of resource properties, with their descriptions."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ebbtide.analysis.recording.values import at


@dataclass(frozen=True, slots=True)
class Expected:
    """Required value of a property.

    Attributes:
        text: the value as text.
        holds: returns whether a value is accepted; None is an unset property.
    """

    text: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class RequiredProperty:
    """A required property of every resource of a type that a stack creates.

    Attributes:
        type: Pulumi type of the resource; `Job` for a Job that Ebbtide creates.
        path: property path.
        expected: required value.
        unless: property paths; a resource that has one, other than false, is exempt.
    """

    type: str
    path: str
    expected: Expected
    unless: tuple[str, ...] = ()

    def exempts(self, inputs: Mapping[str, Any]) -> bool:
        """Return whether a resource is exempt, by its inputs."""
        return any(at(dict(inputs), path) not in (None, False) for path in self.unless)


def is_(value: Any) -> Expected:
    """Expect one value."""
    text = value if isinstance(value, str) else json.dumps(value)
    return Expected(f"`{text}`", lambda actual: actual == value)


def one_of(*values: str) -> Expected:
    """Expect one of several values."""
    return Expected(" or ".join(f"`{value}`" for value in values), lambda actual: actual in values)


def without(*words: str) -> Expected:
    """Expect Role rules that contain none of these verbs and resources."""

    def holds(rules: Any) -> bool:
        named = {word for rule in rules for part in ("verbs", "resources") for word in rule[part]}
        return bool(rules) and named.isdisjoint(words)

    return Expected("without " + ", ".join(f"`{word}`" for word in words), holds)


def _reads_no_secrets(rules: Any) -> bool:
    verbs = {verb for rule in rules if "secrets" in rule["resources"] for verb in rule["verbs"]}
    # The API server answers a change with the object.
    return verbs.isdisjoint({"get", "list", "watch", "update", "patch", "deletecollection", "*"})


def _creates_no_pods(rules: Any) -> bool:
    return all("create" not in rule["verbs"] for rule in rules if "pods" in rule["resources"])


SET: Final = Expected("set", lambda actual: actual is not None)
NOT_SET: Final = Expected("not set; off is the cloud's default", lambda actual: actual in (None, False))
NO_SECRETS: Final = Expected("no reading of `secrets`", _reads_no_secrets)
NO_PODS: Final = Expected("no creating of `pods`", _creates_no_pods)
