"""What the annotation `pulumi.com/waitFor` asks for, in place of what the provider waits for by itself.

Source: pulumi-kubernetes 4.32, provider/pkg/metadata/overrides.go and provider/pkg/jsonpath. Of JSONPath it
takes keys, indices and filters for equality (`[?(@.type=="Ready")]`), and refuses the rest.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, cast

from ebbtide_rehearsal.cloud.kubernetes.objects import MISSING, Object, annotation, at
from ebbtide_rehearsal.cloud.kubernetes.readiness import Check, Surroundings, condition
from ebbtide_rehearsal.cloud.provider import RefusedError

WAIT_FOR: Final = "pulumi.com/waitFor"

_BRACES: Final = re.compile(r"^\{\s*\$?(.*?)\s*\}$")
_STEP: Final = re.compile(
    r"""\.(?P<key>[\w-]+)
      | \['(?P<quoted>[^']+)'\]
      | \[(?P<index>\d+)\]
      | \[\?\(@\.(?P<field>\w+)\s*==\s*["'](?P<value>[^"']*)["']\)\]""",
    re.VERBOSE,
)


def asked_for(live: Object) -> Check | None:
    """The check that an object's annotation asks for; None where it has none.

    Raises:
        RefusedError: it is in no form that the provider knows.
    """
    text = annotation(live, WAIT_FOR)
    if not text:
        return None
    checks = [_check(expression) for expression in _expressions(text)]

    def check(found: Object, around: Surroundings) -> str | None:
        return next((missing for one in checks if (missing := one(found, around))), None)

    return check


def _expressions(text: str) -> Sequence[str]:
    try:
        found: Any = json.loads(text)
    except ValueError:
        return [text]
    if not isinstance(found, list) or not found:
        raise RefusedError("at least one condition must be specified")
    return [str(item) for item in cast("list[Any]", found)]


def _check(expression: str) -> Check:
    kind, _, rest = expression.partition("=")
    match kind:
        case "condition":
            return _of_condition(rest)
        case "jsonpath":
            return _of_path(rest)
        case _:
            raise RefusedError(f'expected a "jsonpath=" or "condition=" prefix, got "{expression}"')


def _of_condition(text: str) -> Check:
    name, _, wanted = text.partition("=")

    def check(live: Object, _: Surroundings) -> str | None:
        found = condition(live, name).get("status")
        return None if found == (wanted or "True") else f"condition {name} is {found or 'not there'}"

    return check


def _of_path(text: str) -> Check:
    braced, _, wanted = text.replace("==", "\0").partition("=")
    path, wanted = braced.replace("\0", "=="), wanted.replace("\0", "==")
    inside = _BRACES.match(path)
    if inside is None:
        raise RefusedError(f"{path} should be wrapped in brackets {{ ... }}")
    steps = list(_STEP.finditer(inside[1]))
    if "".join(step[0] for step in steps) != inside[1]:
        raise RefusedError(f"{path} is a JSONPath that a rehearsal cannot wait for")

    def check(live: Object, _: Surroundings) -> str | None:
        found: Any = live
        for step in steps:
            found = _stepped(found, step)
        if found is MISSING:
            return f"{path} selected nothing"
        shown = str(found).lower() if isinstance(found, bool) else str(found)
        return None if not wanted or shown == wanted else f"{path} is {shown}"

    return check


def _stepped(value: Any, step: re.Match[str]) -> Any:
    if step["index"] is not None:
        return at(value, int(step["index"]))
    if step["field"] is None:
        return at(value, step["key"] or step["quoted"])
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return next((item for item in items if at(item, step["field"]) == step["value"]), MISSING)
