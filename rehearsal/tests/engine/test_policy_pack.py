"""The policy pack, run by the real `pulumi preview --policy-pack` on stacks that pass and that do not.

The pack runs in its own environment, `policies/.venv` (`make policies`). Pulumi's own language host starts it
there. The newest host that can be built from a tagged Go module, 3.79 of 2023, starts the stack's program in
its place: then the engine starts the pack as an executable, which does what a newer host does.
"""

import shlex
from collections.abc import Generator
from pathlib import Path

import pytest
import yaml

from ebbtide_rehearsal.engine import HOST
from rehearsal.tests.engine.sites import checkout_in
from rehearsal.tests.engine.terminal import Terminal, terminal_on_gke
from tests.repository import ROOT, declaration

pytestmark = [pytest.mark.engine, pytest.mark.long]

_PACK = ROOT / "policies"
_PYTHON = _PACK / ".venv" / "bin" / "python"


@pytest.fixture
def terminal(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Terminal]:
    """A copy of the checkout with the pack, and a fake cloud."""
    assert _PYTHON.exists(), "The policy pack has no environment: run `make policies`."
    with terminal_on_gke(tmp_path, checkout_in(tmp_path), request.node) as terminal:
        yield terminal


def _is_built(directory: Path) -> bool:
    """True for the language host that is built; false for the one of the user's `pulumi`."""
    return (directory / "bin" / HOST).is_file()


def _pack(directory: Path) -> Path:
    """The pack, or an executable that starts it, for a host that does not."""
    if not _is_built(directory):
        return _PACK
    program = directory / "policy-pack"
    program.write_text(f'#!/bin/sh\nexec "{_PYTHON}" -u -m pulumi.policy "$1" "{_PACK}"\n')
    program.chmod(0o755)
    return program


def _preview(terminal: Terminal, policy: object, *options: str) -> tuple[int, str]:
    """Status and output of a preview of the dev stack with a policy."""
    config = {"ebbtide:cluster": declaration(ROOT / "Pulumi.dev.yaml"), "ebbtide:policy": policy}
    (terminal.root / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": config}), encoding="utf-8")
    done = terminal.ended(shlex.join(["pulumi", "preview", "--stack", "dev", *options]))
    return done.returncode, done.stdout + done.stderr


def test_the_engine_runs_the_rules(terminal: Terminal, tmp_path: Path) -> None:
    """A stack within its limits passes with advice, and one that breaks them fails without an exception."""
    terminal.run("pulumi login file://~ && pulumi stack init dev")
    option = f"--policy-pack={_pack(tmp_path)}"
    status, text = _preview(terminal, {"limits": {"maximumUsdPerHour": 60}}, option)
    assert status == 0, text
    assert "spot-system, pool system" in text

    broken = {"limits": {"maximumUsdPerHour": 5, "machines": ["e2-*", "n1-*", "a2-*"]}}
    status, text = _preview(terminal, broken, option)
    assert status != 0, text
    assert "maximum-cost, stack" in text
    assert "approved-machines, pool cpu-spot" in text

    exceptions = [
        {"rule": "maximum-cost", "resource": "stack", "reason": "a campaign"},
        {"rule": "approved-machines", "resource": "cpu-spot", "reason": "a trial"},
    ]
    status, text = _preview(terminal, {**broken, "exceptions": exceptions}, option)
    assert status == 0, text
    assert "Excepted: a campaign" in text

    status, text = _preview(terminal, {"levels": {"spot-sistem": "advisory"}}, option)
    assert status != 0
    assert "did you mean spot-system?" in text


def test_the_host_that_is_built_does_not_start_a_pack(terminal: Terminal, tmp_path: Path) -> None:
    """With a newer one in the table of tools, the executable is not needed any more."""
    if not _is_built(tmp_path):
        pytest.skip("The host is the one of the user's pulumi.")
    terminal.run("pulumi login file://~ && pulumi stack init dev")
    status, text = _preview(terminal, {}, f"--policy-pack={_PACK}")
    assert status != 0
    assert f'policy pack "{_PACK}" failed to start' in text
