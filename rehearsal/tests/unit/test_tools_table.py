"""The table of tools, and the pins beside it."""

import re
from pathlib import Path

import pytest

from ebbtide.declaration.catalog.versions import PINS
from ebbtide_rehearsal.tools.download import MODULES, Release, pins, releases
from ebbtide_rehearsal.tools.items import Data, Part, Tool
from ebbtide_rehearsal.tools.table import all_items

_REQUIRED = re.compile(r"^(?:require )?\t?([\w./-]+\.[\w./-]+) (v\S+)$", flags=re.MULTILINE)
_REPLACED = re.compile(r"^\t(\S+) => (\S+) (v\S+)$", flags=re.MULTILINE)
_OF_THEIR_OWN = {"cluster-autoscaler": "v0.33.1"}
"""Releases of the staging modules of groups that do not use the control plane's."""
_GROUPS = sorted(path.name for path in MODULES.iterdir())
_TOOLS = [item for item in all_items().values() if isinstance(item, Tool)]
_DATA = [item for item in all_items().values() if isinstance(item, Data)]
_MODULES = sorted(
    {(tool.group, tool.module, f"v{tool.version}") for tool in _TOOLS}
    | {(data.group, part.module, part.version) for data in _DATA for part in data.parts}
)


def _texts(group: str) -> tuple[str, str]:
    go_mod, go_sum = pins(group)
    return go_mod.read_text(encoding="utf-8"), go_sum.read_text(encoding="utf-8")


@pytest.mark.parametrize("item", all_items().values(), ids=list(all_items()))
def test_every_row_says_why_and_from_when(item: Tool | Data) -> None:
    """A sentence, and a version with a date and a source."""
    names = [item.pin] if isinstance(item, Tool) else [part.pin for part in item.parts]
    assert item.why.endswith(".")
    assert all(PINS[name].as_of and PINS[name].source for name in names)


@pytest.mark.parametrize(("group", "module", "version"), _MODULES)
def test_modules_are_pinned_where_the_table_says(group: str, module: str, version: str) -> None:
    """In go.mod at the table's version, and in go.sum with the hashes of its files and of its go.mod."""
    go_mod, go_sum = _texts(group)
    assert dict(_REQUIRED.findall(go_mod))[module] == version
    assert f"{module} {version} h1:" in go_sum
    assert f"{module} {version}/go.mod h1:" in go_sum


@pytest.mark.parametrize("group", _GROUPS)
def test_go_mod_asks_for_nothing_else(group: str) -> None:
    """go.mod requires exactly the modules of the table, at its versions."""
    required = dict(_REQUIRED.findall(_texts(group)[0]))
    known = {module: version for of, module, version in _MODULES if of == group}
    assert required == known


@pytest.mark.parametrize("group", _GROUPS)
def test_what_is_replaced_is_of_the_same_release(group: str) -> None:
    """Kubernetes' staging modules, each by its own version of one release, and no directory of a machine."""
    go_mod, _ = _texts(group)
    replaced = _REPLACED.findall(go_mod)
    assert go_mod.count("=>") == len(replaced)
    versions = {_OF_THEIR_OWN.get(group, f"v{PINS['kubernetes-staging'].version}")}
    versions |= {f"v{PINS['provisioning-request'].version}"}
    assert [(name, by, of) for name, by, of in replaced if name != by or of not in versions] == []


def test_staging_is_of_the_pinned_release() -> None:
    """0.36.2 is 1.36.2."""
    assert f"1.{PINS['kubernetes-staging'].version.removeprefix('0.')}" == PINS["kubernetes"].version


def test_every_group_is_used() -> None:
    """Every group of pins has a program that is built from it."""
    assert sorted({item.group for item in all_items().values()}) == _GROUPS


def test_parts_stay_inside() -> None:
    """No part of data is copied beside its directory."""
    parts: list[Part] = [part for data in _DATA for part in data.parts]
    assert [part for part in parts for path in (part.source, part.into) if ".." in Path(path).parts] == []
    assert all(not Path(part.into).is_absolute() for part in parts)


_OTHER_VERSIONS = {"pulumi-language-python": "3.259.0", "pulumi-resource-kubernetes": "4.25.0"}
"""Releases of programs that Go modules have only without a tag, or only in an older version."""


@pytest.mark.parametrize("release", releases(), ids=lambda release: f"{release.program}-{release.platform}")
def test_a_release_is_pinned_by_its_hash(release: Release) -> None:
    """A release has the version that would be built, an https address, a whole hash and its source."""
    tool = all_items()[release.program]
    assert isinstance(tool, Tool)
    assert release.version == _OTHER_VERSIONS.get(release.program, tool.version)
    assert release.version in release.url
    assert release.url.startswith("https://")
    assert re.fullmatch(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}", release.digest)
    assert release.source
    assert release.platform.partition("-")[0] in {"linux", "darwin"}


def test_one_address_has_one_hash() -> None:
    """Programs of one archive share it, and no program has two releases for a platform."""
    assert len({release.url for release in releases()}) == len({release.digest for release in releases()})
    assert len({(release.program, release.platform) for release in releases()}) == len(releases())


def test_a_program_that_behaves_otherwise_is_built() -> None:
    """Only the Kubernetes provider is patched and downloaded: its patches name files."""
    patched = {tool.name for tool in _TOOLS if tool.changes}
    assert patched & {release.program for release in releases()} == {"pulumi-resource-kubernetes"}
