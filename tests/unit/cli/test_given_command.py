"""Command lines that continue a command, and what they say has happened."""

import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.cli.entry_point import app
from ebbtide.text import command_line
from ebbtide.values.given_command import GivenCommand

_VALUES = ("prod", "acme/prod", "a b", "it's", "$(x)", "a=b", "*", "\u00e4", 'say "x"', "-1x")
_OTHERS = ("1", "7", "90m", "text", "json", "gke", "queue", "bucket", "user", "declaration")
"""Values of options that are numbers, durations, or words of a list."""


_ROOT: Any = typer.main.get_command(app)


def _commands() -> Iterator[tuple[str, Any]]:
    """Yield every command by its name."""
    for name, command in _ROOT.commands.items():
        for part, own in getattr(command, "commands", {"": command}).items():
            yield f"{name} {part}".strip(), own


_COMMANDS = dict(_commands())


def _parsed(words: list[str]) -> tuple[GivenCommand, dict[str, Any]]:
    """Parse words as the command line does, without running the command."""
    command, rest = _ROOT, [*words]
    context = command.make_context("ebbtide", [*words])
    while hasattr(command, "commands"):
        _, command, rest = command.resolve_command(context, rest)
        context = command.make_context(command.name, rest, parent=context)
    return context.obj, context.params


@cache
def _values(name: str, option: str) -> list[str]:
    """Return the values that an option takes."""
    command = _COMMANDS[name]
    (parameter,) = (item for item in command.params if option in item.opts)
    context = command.context_class(command)

    def takes(value: str) -> bool:
        try:
            parameter.handle_parse_result(
                context,
                {parameter.name: [value] if parameter.multiple or parameter.nargs != 1 else value},
                [],
            )
        except Exception:  # noqa: BLE001 - of typer or of its own
            return False
        return True

    return [value for value in (*_VALUES, *_OTHERS) if takes(value)]


@st.composite
def _lines(draw: st.DrawFn, name: str) -> list[str]:
    """A command line with any of a command's options, under any of their names."""
    words: list[str] = []
    for parameter in _COMMANDS[name].params:
        if parameter.param_type_name == "argument" or parameter.name in {"help", "backend", "env"}:
            continue
        for _ in range(draw(st.integers(int(parameter.required), 2 if parameter.multiple else 1))):
            option = draw(st.sampled_from([*parameter.opts, *parameter.secondary_opts]))
            words += [option] if parameter.is_flag else [option, draw(st.sampled_from(_values(name, option)))]
    values = [
        draw(st.sampled_from(_values(name, item.opts[0])))
        for item in _COMMANDS[name].params
        if item.param_type_name == "argument"
        for _ in range(item.required or draw(st.integers(0, 1)))
    ]
    if name == "run":
        return [*name.split(), *words, "--", *values]
    return [*name.split(), *words, *(["--"] if values else []), *values]


@pytest.mark.parametrize("name", _COMMANDS)
@settings(max_examples=6)
@given(data=st.data())
def test_a_command_line_is_repeated_with_all_its_options(name: str, data: st.DataObject) -> None:
    """The printed command parses to the same options as what was typed, whatever a command's options are."""
    words = data.draw(_lines(name))
    command, parameters = _parsed(words)
    printed = shlex.split(command.again())[len(shlex.split(command_line())) :]
    assert command.name == name
    assert _parsed(printed)[1] == parameters


def test_without_a_terminal_a_command_says_what_it_has_done() -> None:
    """A question without an answer comes with what is changed already, and the command that needs none."""
    command, _ = _parsed(["extend", "--stack", "prod", "--hours", "4", "--cwd", "a b"])
    command.begin("prod")
    assert "There is no terminal to confirm, so nothing was changed. " in command.unconfirmed("Update?")
    command.happens("the lifetime is 12 hours in Pulumi.prod.yaml")
    again = command_line("extend", "prod", "--yes", "--hours", "4", "--cwd", "a b")
    assert command.unconfirmed("Update?") == (
        "Update? There is no terminal to confirm, and so far the lifetime is 12 hours in Pulumi.prod.yaml. "
        f"Continue with: {again}"
    )


def test_another_command_is_for_the_same_project_or_cluster() -> None:
    """A printed command has the options that its stack, its file or its Job is found with, and no others."""
    command, _ = _parsed(["up", "prod", "--quotas", "--config-file", "b.yaml", "--cwd", "a"])
    assert command.on_stack("wake", "prod") == command_line(
        *("wake", "prod", "--config-file", "b.yaml", "--cwd", "a")
    )
    file = Path("b.yaml").resolve()
    assert command.pulumi("up", "--stack", "prod") == f"pulumi up --stack prod --config-file {file} --cwd a"
    command, _ = _parsed(["why", "train", "--context", "c"])
    assert command.on_job("rerun", "train", "lab") == command_line(
        *("rerun", "train", "-n", "lab", "--context", "c")
    )
