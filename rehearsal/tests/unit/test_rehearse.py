"""Prerequisites of a rehearsal, and the settings of its fake cloud."""

import platform
from pathlib import Path
from typing import Any

import pytest

from ebbtide.analysis.preview.stack_files import read_stack
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide_rehearsal.cloud.running import CloudSettings
from ebbtide_rehearsal.failures import RehearsalError
from ebbtide_rehearsal.rehearse import needs
from ebbtide_rehearsal.scenarios.model import Scenario, built_in, read
from tests.declarations import GKE
from tests.repository import ROOT

UP: dict[str, Any] = {"do": "up"}


def _changing(addons: object, **more: object) -> dict[str, Any]:
    """A step that changes the add-ons."""
    return UP | {"change": {"addons": addons}} | more


def _optional_tools(addons: object, *steps: dict[str, Any]) -> set[str]:
    """Return the optional tools that a scenario needs."""
    scenario = Scenario.model_validate(
        {"title": "It is tried.", "declaration": {**GKE, "addons": addons}, "steps": [UP, *steps]}
    )
    tools = needs(read_stack(ROOT, "dev"), scenario, ROOT)
    optional = {
        "jobset",
        "trainer-controller-manager",
        "katib-controller",
        "workflow-controller",
        "argo-crds",
    }
    return optional & set(tools)


@pytest.mark.parametrize(
    ("addons", "steps", "expected"),
    [
        ({}, [], set[str]()),
        ({"trainer": {}}, [], {"jobset", "trainer-controller-manager"}),
        ({"katib": {}}, [], {"katib-controller"}),
        ({}, [_changing({"katib": {}})], {"katib-controller"}),
        ({"katib": {}}, [_changing(None)], {"katib-controller"}),
        ({}, [_changing("katib", refused="addons")], set[str]()),
    ],
    ids=["none", "trainer", "katib", "later", "no longer", "with a fault"],
)
def test_what_some_declaration_can_use_is_asked_for(
    addons: object, steps: list[dict[str, Any]], expected: set[str]
) -> None:
    """The declaration of every step counts."""
    assert _optional_tools(addons, *steps) == expected


def test_a_scenario_of_another_stack_is_asked_for_its_own() -> None:
    """Not the stack's that the command names."""
    home = ROOT / "examples" / "aks-spot"
    scenario = read(home / "rehearsal.yaml")
    assert scenario.stack is not None
    assert "katib-controller" not in needs(read_stack(ROOT, "dev"), scenario, home)
    assert "katib-controller" in needs(read_stack(ROOT, "dev"), read(built_in()["changes"]), ROOT)


@pytest.mark.parametrize(
    ("system", "stack", "message"),
    [
        ("Darwin", "dev", "DNS endpoint does not run on macOS"),
        ("Windows", "dev-aks", "does not run on Windows"),
    ],
)
def test_another_platform_is_refused(
    system: str, stack: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error comes before a tool is built; on macOS, a stack on AKS is rehearsed."""
    monkeypatch.setattr(platform, "system", lambda: system)
    scenario = Scenario.model_validate({"title": "It is tried.", "steps": [UP]})
    with pytest.raises(RehearsalError, match=message):
        needs(read_stack(ROOT, stack), scenario, ROOT)
    if system == "Darwin":
        assert needs(read_stack(ROOT, "dev-aks"), scenario, ROOT)


def test_a_release_ahead_of_its_pin_is_refused() -> None:
    """Nothing is built for an add-on's version that no rehearsal has."""
    ahead = {"version": "9.0.0", "digest": "sha256:" + "0" * 64}
    with pytest.raises(RehearsalError, match=r"Kueue 9\.0\.0, and a .* without addons\.kueue\.version"):
        _optional_tools({"kueue": ahead})


def test_argo_is_asked_for_where_a_pipeline_runs() -> None:
    """Argo's controller, which takes minutes to build, is built only for scenarios with a pipeline."""
    run = {"do": "run-pipeline", "program": "pipeline.py"}
    assert _optional_tools({}, run) == {"workflow-controller", "argo-crds"}


def test_a_fault_is_said_before_anything_is_built() -> None:
    """Tools can take a quarter of an hour."""
    with pytest.raises(DeclarationError):
        _optional_tools({"katibb": {}})


def test_the_cloud_knows_what_it_was_told(tmp_path: Path) -> None:
    """Settings are written to a file, with the tools; a tool without an entry is an error."""
    settings = CloudSettings(60, {"pools": []}, {"etcd": "/bin/etcd"})
    settings.write(tmp_path)
    read_back = CloudSettings.read(tmp_path)
    assert read_back == settings
    assert read_back.path("etcd") == Path("/bin/etcd")
    with pytest.raises(KeyError):
        read_back.path("jobset")
