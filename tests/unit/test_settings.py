"""Errors of a stack's configuration as `pulumi up` shows them: in the program's own message."""

import json
from pathlib import Path

import pytest

from ebbtide.analysis.preview.stack_files import read_stack
from ebbtide.analysis.recording.program import ProgramError
from ebbtide.analysis.recording.record import record
from tests.repository import ROOT

_DEV = """\
config:
  ebbtide:cluster:
    owner: vision-team
    cloud: {kind: gke, project: acme-ml, location: us-central1-a}
    pools:
      - {name: system, role: system, machine: e2-standrad-4, nodes: {max: 3}}
"""
_POOLS = _DEV.partition("    cloud")[2].partition("\n")[2]
_VALID = _POOLS.replace("standrad", "standard")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the repository's program and a faulty stack."""
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(_DEV)
    (tmp_path / "__main__.py").write_text((ROOT / "__main__.py").read_text())
    (tmp_path / "components").symlink_to(ROOT / "components")
    return tmp_path


def _settle(project: Path, settings: str, cluster: str = _POOLS) -> None:
    """Write the settings of the stack before its declaration."""
    lines = "".join(f"  ebbtide:{setting}\n" for setting in settings.split(", "))
    (project / "Pulumi.dev.yaml").write_text(f"config:\n{lines}  ebbtide:cluster:\n{cluster}")


def _message(project: Path, **config: str) -> str:
    files = read_stack(project, "dev")
    values = {f"ebbtide:{key}": value for key, value in config.items()} or files.config
    with pytest.raises(ProgramError) as caught:
        record(project, project="shop", stack="dev", config=values)
    return str(caught.value)


def test_a_refused_declaration_has_positions(project: Path) -> None:
    """The stack's file beside the program is found, and each fault has its line there."""
    assert _message(project) == (
        "The declaration has 1 error.\n"
        "\n"
        "Pulumi.dev.yaml:6:38: pools[0].machine\n"
        "  No machine type e2-standrad-4 is known on GKE; did you mean e2-standard-4? "
        "The node pool could not be created.\n"
        "  Write a known machine type, or declare vcpus and memoryGib with it."
    )


def test_configuration_from_elsewhere_has_paths_alone(project: Path) -> None:
    """With another --config-file, the values are not those of the file beside the program."""
    cluster = json.loads(read_stack(project, "dev").config["ebbtide:cluster"])
    cluster["pools"][0]["machine"] = "e2-stanadrd-8"
    assert "\n\npools[0].machine\n  No machine type" in _message(project, cluster=json.dumps(cluster))


def test_a_declaration_that_is_no_object(project: Path) -> None:
    """Plain text in its place is a fault like any other."""
    assert "The declaration is the text" in _message(project, cluster="hello")


def test_no_declaration(project: Path) -> None:
    """The message says where to write one."""
    assert "declares no cluster. Write one under `ebbtide:cluster`" in _message(project, other="x")


def test_a_misspelt_declaration(project: Path) -> None:
    """The engine hands the key over under its wrong name; the message names it and its line."""
    (project / "Pulumi.dev.yaml").write_text("config:\n  ebbtide:clutser: {}\n")
    with pytest.raises(ProgramError) as caught:
        record(project, project="shop", stack="dev", config={"ebbtide:clutser": "{}"})
    assert str(caught.value) == (
        "The stack dev declares no cluster. Pulumi.dev.yaml:2:3: Unused configuration key "
        "`ebbtide:clutser`. Write `ebbtide:cluster:`."
    )


_TEMPLATE = (ROOT / "template/gke/__main__.py").read_text().replace("ebbtide.components", "components")


def test_settings_complete_the_declaration(project: Path) -> None:
    """A new project's program takes owner and cloud from the stack's settings, and those of a base."""
    (project / "__main__.py").write_text(_TEMPLATE)
    _settle(project, "owner: vision, project: acme-ml, location: us-central1-z", _VALID)
    wrong = ": cloud.location\n  us-central1 has no zone us-central1-z"
    assert f"\n\nPulumi.dev.yaml:4:3{wrong}" in _message(project)
    (project / "Pulumi.base.yaml").write_text((project / "Pulumi.dev.yaml").read_text())
    (project / "Pulumi.dev.yaml").write_text("config:\n  ebbtide:cluster: {extends: Pulumi.base.yaml}\n")
    assert wrong[2:] in _message(project)
    (project / "Pulumi.base.yaml").write_text("config:\n  ebbtide:cluster: {pools: []}\n")
    message = _message(project)
    assert "owner" in message
    assert "cloud" in message


_EARLIER = """\
import pulumi
from components import program
from components.gke import deploy, provider

config = pulumi.Config("ebbtide")
settings = program.settings(config, "owner", "project", "location")
cluster = program.declared(
    config.require_object("cluster"),
    owner=settings["owner"],
    cloud={"kind": "gke", "project": settings["project"], "location": settings["location"]},
)
deploy(cluster, provider("gcp", cluster))
"""


def test_the_program_of_an_earlier_init(project: Path) -> None:
    """A project keeps its program: its settings are read, and all that are missing are named."""
    (project / "__main__.py").write_text(_EARLIER)
    _settle(project, "owner: vision, project: acme-ml, location: us-central1-a", _VALID)
    config = {**read_stack(project, "dev").config}
    assert record(project, project="shop", stack="dev", config=config).resources
    del config["ebbtide:owner"], config["ebbtide:location"]
    with pytest.raises(ProgramError, match="The stack has no ebbtide:owner and ebbtide:location"):
        record(project, project="shop", stack="dev", config=config)


def test_accounts_of_both_clouds(project: Path) -> None:
    """The cloud is not guessed; the declared one takes its own account."""
    (project / "__main__.py").write_text(_TEMPLATE)
    settings = "project: acme-ml, subscription: none, location: mars"
    _settle(project, settings)
    assert "ebbtide:subscription, which is of AKS. Remove one of them" in _message(project)
    _settle(project, settings, f"    cloud: {{kind: aks}}\n    owner: us\n{_POOLS}")
    assert "cloud.subscription\n" in _message(project)
    assert "cloud.project" not in _message(project)
