"""Add-ons in a rehearsal: a made-up one is found by its name, in every table."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from ebbtide_rehearsal.addons import rehearsed
from ebbtide_rehearsal.addons.definition import Rehearsed, Revision
from ebbtide_rehearsal.control_plane.program import Program, managed
from ebbtide_rehearsal.control_plane.program_pods import available_programs
from ebbtide_rehearsal.stage import link_charts, mirror
from ebbtide_rehearsal.tools.find import AvailableTool, Origin, Tools
from ebbtide_rehearsal.tools.items import Condition, Tool, from_module
from ebbtide_rehearsal.tools.table import all_items, needed
from tests.made_up_add_on import CHART, register

_MODULE = "acme.example/gadget"
_GADGET = Rehearsed(
    data=(
        from_module("gadget-chart", "gadget", _MODULE, "gadget", "chart", "Its chart.", Condition.DECLARED),
        from_module("gadget-kinds", "gadget", _MODULE, "gadget", "kinds", "Its kinds.", Condition.DECLARED),
    ),
    tools=(
        Tool(
            name="gadget-controller",
            group="gadget",
            module=_MODULE,
            package=f"{_MODULE}/cmd",
            pin="gadget",
            why="Turns gears.",
            minutes=1,
            when=Condition.DECLARED,
        ),
    ),
    programs=(Program(tool="gadget-controller", labels={"app": "gadget"}, out_of_cluster=managed),),
    charts={CHART: "gadget-chart"},
    directories={"gadget-kinds": (Revision("acme.example/a/gadget", "v4.5.6"), "kinds")},
)


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Tools]:
    """The made-up add-on registered, and its tools."""
    register(monkeypatch)
    module = ModuleType("ebbtide_rehearsal.addons.gadget")
    module.__dict__["REHEARSED"] = _GADGET
    monkeypatch.setitem(sys.modules, module.__name__, module)
    rehearsed.cache_clear()
    all_items.cache_clear()
    data = tmp_path / "data"
    data.mkdir()
    (data / "kinds.yaml").write_text("kind: X\n")
    names = [item.name for item in _GADGET.items]
    yield Tools({name: AvailableTool(name, "4.5.6", Origin.CACHE, data) for name in names})
    rehearsed.cache_clear()
    all_items.cache_clear()


def test_its_tools_are_needed_where_it_is_declared(tools: Tools) -> None:
    """And nowhere else."""
    names = {"gadget-chart", "gadget-kinds", "gadget-controller"}
    assert set(tools.by_name) == names
    assert set(needed({"gadget"})) - set(needed({"katib"})) == names
    assert all_items()["gadget-controller"].version == "4.5.6"


def test_its_controller_runs(tools: Tools) -> None:
    """While a pod with its labels is on a node."""
    assert [item.program.selector for item in available_programs(tools)] == ["app=gadget"]


def test_its_sources_are_local(tools: Tools, tmp_path: Path) -> None:
    """The chart where Helm looks for it, the manifests in a git repository at the pinned tag."""
    link_charts(tmp_path / "project", tools, [])
    assert (tmp_path / "project" / CHART).resolve() == tmp_path / "data"
    environment = mirror(tmp_path / "git", tools, [], tmp_path / "bin")
    assert environment["GIT_CONFIG_VALUE_0"] == "https://acme.example/a/gadget"


@pytest.mark.parametrize("name", sorted(rehearsed()))
def test_every_chart_and_directory_is_data(name: str) -> None:
    """Each is among the data of its add-on, and each program among its tools."""
    add_on = rehearsed()[name]
    assert {*add_on.charts.values(), *add_on.directories} <= {item.name for item in add_on.data}
    assert {program.tool for program in add_on.programs} <= {item.name for item in add_on.tools}
