"""Inspection of a stack before it is destroyed, without access to its cluster."""

import socket
from io import StringIO
from typing import Any

from rich.console import Console

from ebbtide.operations.inspection import Inspection, inspect, remaining_volumes
from ebbtide.operations.stack import Step, narration
from tests.unit.operations.objects import PROFILE, STATE


def _kubeconfig(server: str) -> dict[str, Any]:
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }


def test_outputs_that_lead_nowhere() -> None:
    """The error names the fault, and nothing else is reported."""
    profile = PROFILE.output()
    assert inspect({}, STATE).error == "The stack has no output `kubeconfig`: running work is unknown."
    assert inspect({"kubeconfig": "{}"}, STATE).error.startswith(
        "The stack's output `placementProfile` is unreadable, and running work is unknown: "
    )
    for bad in ("no JSON", "[]", "{}"):
        error = inspect({"kubeconfig": bad, "placementProfile": profile}, STATE).error
        assert error.startswith("The cluster is unreachable, and running work is unknown: ")


def test_a_cluster_that_does_not_answer() -> None:
    """The error is reported, and nothing waits for the cluster."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        server = f"https://127.0.0.1:{taken.getsockname()[1]}"
        inspection = inspect({"kubeconfig": _kubeconfig(server), "placementProfile": PROFILE.output()}, STATE)
    assert inspection == Inspection(
        error=f"The cluster is unreachable, and running work is unknown: The API server at {server} "
        "cannot be reached (Connection refused)",
        is_unanswered=True,
    )
    assert remaining_volumes(inspection, STATE) == []


def test_a_log_has_a_line_for_what_is_gone() -> None:
    """A terminal has a line that moves, and goes at the end."""
    removals = [Step("acme:web:Site", "a", done=False), Step("acme:web:Site", "a", done=True)]
    log, screen = StringIO(), StringIO()
    for file, terminal in ((log, False), (screen, True)):
        with narration(Console(file=file, force_terminal=terminal, width=100), 1) as tell:
            for step in removals:
                tell(step)
    assert log.getvalue() == "deleted: acme:web:Site a\n"
    assert "1/1" in screen.getvalue()
    assert "Site a" in screen.getvalue()
