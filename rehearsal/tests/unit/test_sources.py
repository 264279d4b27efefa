"""Charts, kustomizations and add-ons of this machine, as the Kubernetes provider looks for them."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.addons import ADD_ONS
from ebbtide_rehearsal import RehearsalError
from ebbtide_rehearsal.addons import REHEARSED, Program, Rehearsed, Revision, managed
from ebbtide_rehearsal.control_plane.program_pods import available_programs
from ebbtide_rehearsal.engine import Shell
from ebbtide_rehearsal.stage import INDEX, indexed, link_charts, mirror
from ebbtide_rehearsal.tools.find import AvailableTool, Origin, Tools
from ebbtide_rehearsal.tools.items import Condition, Tool, from_module
from ebbtide_rehearsal.tools.table import all_items, needed
from tests.made_up_add_on import CHART, register

_KUEUE = f"oci://registry.k8s.io/kueue/charts/kueue@{PINS['kueue'].digest}"


def _tools(**paths: Path) -> Tools:
    """Data at these paths."""
    named = {name.replace("_", "-"): path for name, path in paths.items()}
    return Tools({name: AvailableTool(name, "1.0.0", Origin.CACHE, path) for name, path in named.items()})


def _chart(directory: Path) -> Path:
    directory.mkdir(parents=True)
    (directory / "Chart.yaml").write_text("name: thing\nversion: 1.0.0\n")
    return directory


def _fetched(repository: str, ref: str, into: Path, environment: Mapping[str, str]) -> Path:
    """Fetch as kustomize does (sigs.k8s.io/kustomize/api@v0.19.0, internal/git/cloner.go)."""
    into.mkdir()
    for arguments in (["init"], ["fetch", "--depth=1", repository, ref], ["checkout", "FETCH_HEAD"]):
        subprocess.run(
            ["git", *arguments],  # noqa: S607
            cwd=into,
            env={"PATH": os.environ["PATH"], "HOME": str(into), **environment},
            capture_output=True,
            check=True,
        )
    return into


def test_charts_are_below_the_working_directory_by_their_references(tmp_path: Path) -> None:
    """Charts of the tools are found by address, those of a directory by name."""
    kueue, operator = _chart(tmp_path / "kueue"), _chart(tmp_path / "charts" / "gpu-operator")
    project = tmp_path / "project"
    project.mkdir()
    link_charts(project, _tools(kueue_chart=kueue), [tmp_path / "charts"])
    assert (project / _KUEUE).resolve() == kueue
    assert (project / "gpu-operator").resolve() == operator


def test_git_fetches_what_is_here(tmp_path: Path) -> None:
    """A repository's directory from the tools' data, and a rendered kustomization at another tag; git's
    settings in the environment stay."""
    katib = tmp_path / "katib"
    (katib / "installs").mkdir(parents=True)
    (katib / "installs" / "kustomization.yaml").write_text("resources: []\n")
    (tmp_path / "thing.yaml").write_text("kind: X\n")
    (tmp_path / INDEX).write_text("https://github.com/kubeflow/katib.git//a/b?ref=main: thing.yaml\n")
    programs = tmp_path / "bin"
    redirected = mirror(tmp_path / "git", _tools(katib_manifests=katib), [tmp_path], programs)
    environment = Shell((programs,), redirected, {}).environment()

    repository = "https://github.com/kubeflow/katib"
    committed = _fetched(repository, PINS["katib"].commit, tmp_path / "1", environment)
    assert (committed / "manifests/v1beta1/installs/kustomization.yaml").read_text() == "resources: []\n"
    rendered = _fetched(f"{repository}.git", "main", tmp_path / "2", environment)
    assert (rendered / "a/b/rendered.yaml").read_text() == "kind: X\n"
    assert (rendered / "a/b/kustomization.yaml").read_text() == "resources: [rendered.yaml]\n"


def test_settings_of_git_in_the_environment_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours are numbered after them."""
    monkeypatch.setenv("GIT_CONFIG_COUNT", "2")
    for number, key in enumerate(("http.proxy", "core.pager")):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", key)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", "ours")
    environment = mirror(tmp_path / "git", _tools(trainer_manifests=tmp_path), [], tmp_path / "bin")
    assert environment["GIT_CONFIG_VALUE_2"] == "https://github.com/kubeflow/trainer"
    assert environment["GIT_CONFIG_COUNT"] == "3"


def test_without_kustomizations_git_is_not_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one, its lack is named."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert mirror(tmp_path / "git", _tools(), [], tmp_path / "bin") == {"GIT_CONFIG_COUNT": "0"}
    with pytest.raises(RehearsalError, match="git, which is not on PATH"):
        mirror(tmp_path / "git", _tools(trainer_manifests=tmp_path), [], tmp_path / "bin")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (None, "has no index.yaml"),
        ("- a", "has no index.yaml"),
        ("{", "has no index.yaml"),
        ("github.com/x/y/z?ref=1: none.yaml", "names none.yaml"),
        ("github.com/x/y/z: index.yaml", "is not a directory of a git repository at a tag"),
    ],
)
def test_an_invalid_index_is_refused(tmp_path: Path, text: str | None, wrong: str) -> None:
    """With the reason, and the form of a valid one."""
    if text is not None:
        (tmp_path / INDEX).write_text(text)
    with pytest.raises(RehearsalError, match=wrong) as raised:
        indexed(tmp_path)
    assert "kubectl kustomize ADDRESS" in str(raised.value)


_MODULE = "acme.example/gadget"
_GADGET = Rehearsed(
    data=(
        from_module("gadget-chart", "gadget", _MODULE, "gadget", "chart", Condition.DECLARED),
        from_module("gadget-kinds", "gadget", _MODULE, "gadget", "kinds", Condition.DECLARED),
    ),
    tools=(
        Tool(
            name="gadget-controller",
            group="gadget",
            module=_MODULE,
            package=f"{_MODULE}/cmd",
            pin="gadget",
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
    monkeypatch.setitem(REHEARSED, "gadget", _GADGET)
    all_items.cache_clear()
    data = tmp_path / "data"
    data.mkdir()
    (data / "kinds.yaml").write_text("kind: X\n")
    names = [item.name for item in _GADGET.items]
    yield Tools({name: AvailableTool(name, "4.5.6", Origin.CACHE, data) for name in names})
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


def test_every_add_on_on_the_cluster_is_rehearsed() -> None:
    """Each has its definition under its name."""
    assert REHEARSED.keys() == {name for name, add_on in ADD_ONS.items() if add_on.spec.namespace}


@pytest.mark.parametrize("name", sorted(REHEARSED))
def test_every_chart_and_directory_is_data(name: str) -> None:
    """Each is among the data of its add-on, and each program among its tools."""
    add_on = REHEARSED[name]
    assert {*add_on.charts.values(), *add_on.directories} <= {item.name for item in add_on.data}
    assert {program.tool for program in add_on.programs} <= {item.name for item in add_on.tools}
