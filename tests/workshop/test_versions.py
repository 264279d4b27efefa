"""Pinned versions: one file has them all."""

import csv
import json
import os
import re
from collections.abc import Iterator
from dataclasses import astuple, replace
from typing import Any

import pytest

from docs.generate import NEWER
from ebbtide.declaration.catalog.versions import PINS, Pin
from rehearsal import pins as commands
from tests.loopback import Handler, listening
from tests.repository import ROOT, code_strings, relative, sources, syntax

_VERSIONS = ROOT / "ebbtide" / "declaration" / "catalog" / "versions.py"
_OWN = [
    ROOT / path / "__init__.py"
    for path in ("ebbtide", "rehearsal/ebbtide_rehearsal", "kueue-replay/kueue_replay")
]

_PYTHON = [
    path
    for path in sources(
        "ebbtide", "rehearsal/ebbtide_rehearsal", "kueue-replay/kueue_replay", "components", "stacks"
    )
    if path not in (_VERSIONS, *_OWN)
]
_VERSION = re.compile(r"(?:^|[=:/@])v?(\d+\.\d+\.\d+(?:-gke\.\d+)?)(?![\w.])")
"""A version as something is asked for by it; in a sentence a version says where a fact was read."""


def test_no_version_is_asked_for_elsewhere() -> None:
    """No code but `catalog/versions.py` has a version that something is installed or compared by."""
    assert [
        f"{relative(path)}:{line}: {text}"
        for path in _PYTHON
        for line, text in code_strings(syntax(path))
        if _VERSION.search(text)
    ] == []


def test_every_pin_is_dated() -> None:
    """Each pin says when it was read, and where."""
    dated = re.compile(r"20\d{2}(-\d{2}){0,2}")
    assert [name for name, pin in PINS.items() if not (dated.fullmatch(pin.as_of) and pin.source)] == []


def test_a_pin_moves_alone() -> None:
    """The move of any pin changes its version, date, commit and digest, and no other pin."""
    text = _VERSIONS.read_text(encoding="utf-8")
    for name, pin in PINS.items():
        new = replace(
            pin,
            version=f"{pin.version}-next",
            as_of="2027-01-02",
            commit=pin.commit and "0" * 40,
            digest=pin.digest and "sha256:0",
        )
        if "@sha256:" not in pin.version:  # an image, which its own digest follows
            changed: dict[str, Any] = {}
            exec(compile(commands.moved(text, name, pin, new), "versions", "exec"), changed)  # noqa: S102
            assert {key: astuple(item) for key, item in changed["PINS"].items()} == {
                key: astuple(item) for key, item in {**PINS, name: new}.items()
            }


def test_a_page_names_newer_releases_alone() -> None:
    """Each row of the page of pins is of a pinned package and of a later version than it."""
    with NEWER.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    for row in rows:
        assert PINS[row["pin"]].package
        assert commands.order(row["newest"]) > commands.order(PINS[row["pin"]].version), row["pin"]
        assert row["as_of"].startswith("20")
        assert all(row.values())


def test_renovate_reads_every_package() -> None:
    """The patterns of renovate.json find version and package of each pin that has one."""
    config = json.loads((ROOT / "renovate.json").read_text())
    assert {"custom.regex", "gomod"} <= set(config["enabledManagers"])
    found: set[tuple[str, str]] = set()
    for manager in config["customManagers"]:
        (file_pattern,) = manager["managerFilePatterns"]
        assert re.search(file_pattern.strip("/"), relative(_VERSIONS))
        for pattern in manager["matchStrings"]:
            for match in re.finditer(pattern.replace("(?<", "(?P<"), _VERSIONS.read_text()):
                fields = match.groupdict() | {
                    "datasource": match.groupdict().get("datasource") or manager["datasourceTemplate"]
                }
                found.add((f"{fields['datasource']}:{fields['depName']}", fields["currentValue"]))
    expected = {
        (pin.package, re.sub("^([^@]*:|v)|@.*", "", pin.version)) for pin in PINS.values() if pin.package
    }
    assert found == expected


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module proxy with one module, whose path has an upper-case letter."""
    info = {"Version": "v0.10.1", "Time": "2026-10-24T08:00:00Z", "Origin": {"Hash": "1" * 40}}
    files = {
        "/github.com/!azure/kubelogin/@v/list": "v0.9.0\nv0.10.1\nv0.11.0-rc.1\nv0.10.0\n",
        "/github.com/!azure/kubelogin/@v/v0.10.1.info": json.dumps(info),
    }

    class Proxy(Handler):
        def do_GET(self) -> None:  # noqa: N802 - named by http.server
            self.send_response(200 if self.path in files else 404)
            self.end_headers()
            self.wfile.write(files.get(self.path, "").encode())

    with listening(Proxy) as port:
        monkeypatch.setenv("GOPROXY", f"http://127.0.0.1:{port},direct")
        yield "go:github.com/Azure/kubelogin"


def _proxy() -> str:
    return os.environ["GOPROXY"].partition(",")[0]


def test_the_command_shows_what_is_behind(published: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The newest release counts, pre-releases do not, and a lookup that fails is not an answer."""
    pins = {
        "old": Pin("0.9.0", "2026", "a proxy", package=published),
        "new": Pin("0.10.1", "2026", "a proxy", package=published),
        "gone": Pin("1.0.0", "2026", "a proxy", package="go:example.org/gone"),
        "limit": Pin("1.0.0", "2026", "a document"),
    }
    gone = f"{_proxy()}/example.org/gone/@v/list: HTTP Error 404: Not Found"
    assert commands.report(pins) == 1
    assert capsys.readouterr().out.splitlines() == [
        "old 0.9.0: 0.10.1 is published",
        f"gone 1.0.0: unknown ({gone})",
        "1 of 3 pins is behind.",
    ]


@pytest.mark.parametrize("commit", ["", "0" * 40])
def test_a_module_is_moved_by_its_proxy_alone(published: str, commit: str) -> None:
    """The date and the commit of a release are those of the module's origin, and no other host is asked."""

    def read(address: str) -> str:
        assert address.startswith("http://127.0.0.1:")
        return commands.read(address)

    pin = Pin("0.9.0", "2026", "a proxy", package=published, commit=commit)
    assert commands.released(pin, "0.10.1", read) == ("2026-10-24", commit and "1" * 40)


def test_a_python_package_is_moved_by_its_list_of_releases() -> None:
    """A move reads the address that the list of versions has been read from, and refuses a release without
    files."""

    def read(address: str) -> str:
        assert address == "https://pypi.org/pypi/theirs/json"
        return json.dumps({"releases": {"1.0.1": [{"upload_time": "2026-10-29T12:57:51"}], "1.0.2": []}})

    pin = Pin("1.0.0", "2026", "PyPI", package="pypi:theirs")
    assert commands.released(pin, "1.0.1", read) == ("2026-10-29", "")
    for version in ("1.0.2", "9.9.9"):
        with pytest.raises(OSError, match=rf"^PyPI has no theirs {version}$"):
            commands.released(pin, version, read)


@pytest.mark.usefixtures("published")
def test_a_move_that_fails_names_the_address(capsys: pytest.CaptureFixture[str]) -> None:
    """A version that is not published is refused with the address at which it was looked up."""
    assert commands.main(["kubelogin", "99.0.0"]) == 2
    address = f"{_proxy()}/github.com/!azure/kubelogin/@v/v99.0.0.info"
    refused = f"kubelogin stays at {PINS['kubelogin'].version}: {address}: HTTP Error 404: Not Found\n"
    assert capsys.readouterr().err == refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["kueu", "1.0.0"], "There is no pin kueu. "), (["gpu-operator", "v27.0.0"], "gpu-operator stays at ")],
)
def test_a_pin_that_cannot_be_moved(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown pin, and one whose package is not looked up, end with a sentence."""
    assert commands.main(arguments) == 2
    assert capsys.readouterr().err.startswith(message)


def test_a_move_lists_what_is_left() -> None:
    """Every file that names the version before the move is listed with its lines."""
    shown = "\n".join(commands.left("trainer", PINS["trainer"].version))
    for file in ("components/addons/trainer.py", "ebbtide/declaration/catalog/versions.py"):
        assert re.search(rf"^    {file}: \d+", shown, re.MULTILINE)
    assert "rehearsal/ebbtide_rehearsal/tools/modules/trainer/go.mod: " in shown
    assert "CHANGELOG.md" not in shown
    shown = "\n".join(commands.left("kubernetes", PINS["kubernetes"].version))
    for group in ("kubernetes", "streaming"):  # staging modules are 0.36.2 of 1.36.2
        assert re.search(rf"/modules/{group}/go.mod: \d+, \d+", shown)
