"""An interrupt of a command that follows a Job."""

from collections.abc import Generator
from typing import Any

import pytest

from ebbtide.cli.follow import submit
from ebbtide.cli.options import PreviewFormat
from ebbtide.invocation import command_line
from ebbtide.kubernetes_api import Api
from tests.unit.workloads.clusters import DEV


class _Server(Api):
    """A fake API server that creates everything."""

    def __init__(self) -> None:
        super().__init__(None, "lab")

    def create(self, path: str, body: Any, **query: str) -> Any:
        """Return an object as the API server does."""
        del path, query
        return {**body, "metadata": {**body["metadata"], "uid": "u"}}


def test_an_interrupt_right_after_the_creation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C between the creation of a Job and its first line of progress prints how to follow and cancel."""
    monkeypatch.setattr(Api, "of_user", lambda _context="": _Server())

    def interrupted() -> Generator[str]:
        raise KeyboardInterrupt
        yield

    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": {}}
    with pytest.raises(SystemExit) as ended:
        submit(manifest, profile=DEV, context="", format_=PreviewFormat.TEXT, logs=True, notes=interrupted())
    assert ended.value.code == 130
    again = command_line("follow", "train", "-n", "lab", "--logs")
    assert capsys.readouterr().err.splitlines() == [
        f"train keeps running. Follow it again with: {again}",
        f"Cancel it with: {command_line('cancel', 'train', '-n', 'lab')}",
    ]
