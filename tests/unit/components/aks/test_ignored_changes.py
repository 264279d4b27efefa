"""The fingerprint of the deployed cluster's inputs, read from the state of its own stack."""

import asyncio

import pulumi
import pytest

from components.aks import ignored_changes

EMPTY = "invoke of pulumi:pulumi:readStackOutputs failed: failed to load checkpoint: EOF"


@pytest.fixture(autouse=True)
def stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name the program's stack."""
    for name in ("organization", "project", "stack"):
        monkeypatch.setattr(pulumi, f"get_{name}", lambda name=name: name)
    monkeypatch.setattr(ignored_changes, "_PAUSE", 0.0)


def _answer(
    monkeypatch: pytest.MonkeyPatch, *answers: dict[str, dict[str, str]] | Exception | None
) -> list[str]:
    """Let the engine answer in turn; return the names of the stacks that are read."""
    left, read = list(answers), list[str]()

    async def invoke(token: str, arguments: dict[str, str]) -> dict[str, dict[str, str]] | None:
        assert token == "pulumi:pulumi:readStackOutputs"  # noqa: S105
        read.append(arguments["name"])
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(ignored_changes, "invoke_async", invoke)
    return read


def test_a_state_that_is_being_written_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine may write the state to a file at the same time: the read is repeated."""
    written = {"outputs": {"aksClusterInputs": "abc"}}
    read = _answer(monkeypatch, Exception(EMPTY), Exception(EMPTY), written)
    assert asyncio.run(ignored_changes.deployed()) == "abc"
    assert read == ["organization/project/stack"] * 3


@pytest.mark.parametrize("answer", [None, {}, {"outputs": {}}])
def test_a_stack_without_the_output(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, dict[str, str]] | None
) -> None:
    """There is no fingerprint before the first successful deployment."""
    _answer(monkeypatch, answer)
    assert asyncio.run(ignored_changes.deployed()) is None


@pytest.mark.parametrize(("error", "reads"), [("access denied", 1), (EMPTY, 51)])
def test_another_error_ends_the_program(monkeypatch: pytest.MonkeyPatch, error: str, reads: int) -> None:
    """Another error is not retried, and a state that stays unreadable is reported."""
    read = _answer(monkeypatch, *[Exception(error)] * 60)
    with pytest.raises(Exception, match=error):
        asyncio.run(ignored_changes.deployed())
    assert len(read) == reads
