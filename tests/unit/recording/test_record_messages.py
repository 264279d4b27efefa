"""Messages of a program are recorded, and nothing is printed."""

import pulumi
import pulumi_gcp as gcp
import pytest

from ebbtide.analysis.recording.record import record
from tests.unit.recording.programs import network, run


def test_log_messages_are_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    """Each has its severity and its resource; debug messages are omitted."""

    def program() -> None:
        net = network("net")
        pulumi.log.debug("counting")
        pulumi.log.info("made a network")
        pulumi.log.warn("open to all", resource=net)
        pulumi.log.error("too many")

    recording = run(program)
    assert [(message.severity, message.text) for message in recording.messages] == [
        ("info", "made a network"),
        ("error", "too many"),
        ("warning", "open to all"),
    ]
    (warning,) = recording.says("warning")
    assert warning.urn == recording.named("net").urn
    assert capsys.readouterr() == ("", "")


def test_what_is_printed_is_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    """Printed lines are messages, as for the engine, and standard output contains only the document."""

    def program() -> None:
        print("one\ntwo", end="")  # noqa: T201 - that is what is tested
        print("!")  # noqa: T201
        print()  # noqa: T201

    assert [message.text for message in run(program).says("info")] == ["one", "two!"]
    assert capsys.readouterr().out == ""


def test_the_last_line_needs_no_end() -> None:
    """An unfinished last line is recorded too."""

    def program() -> None:
        print("no newline", end="")  # noqa: T201

    assert [message.text for message in run(program).says("info")] == ["no newline"]


def test_a_secret_of_the_configuration_is_masked() -> None:
    """A program that logs its password is recorded without it."""

    def program() -> None:
        password = pulumi.Config("shop").require("password")
        pulumi.log.warn(f"the password is {password}")
        print("again:", password)  # noqa: T201

    recording = record(
        program,
        project="shop",
        stack="dev",
        config={"shop:password": "hunter22", "shop:short": "a"},
        secret_keys=["shop:password", "shop:short"],
    )
    assert [message.text for message in recording.messages] == [
        "the password is [secret]",
        "again: [secret]",
    ]


def test_the_sdk_warns_through_the_log() -> None:
    """A message of the SDK itself is one of the program's."""

    def program() -> None:
        acme = gcp.Provider("acme", project="acme")
        with pytest.warns(UserWarning, match="conflict between the `provider` field"):
            network("net", pulumi.ResourceOptions(provider=acme, providers={"gcp": acme}))

    (warning,) = run(program).says("warning")
    assert "conflict between the `provider` field" in warning.text


def test_a_version_requirement_is_met() -> None:
    """No engine runs, so none is too old."""
    assert len(run(lambda: pulumi.runtime.require_pulumi_version(">=99.0.0"))) == 0
