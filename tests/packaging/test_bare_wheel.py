"""The wheel with its own requirements and without any extra: every command says what to install."""

import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from packaging.requirements import Requirement

import ebbtide
from ebbtide.cli.error_output import MODULES, OF_COMMANDS
from tests.repository import ROOT, ran


@pytest.fixture(scope="session")
def bare(install: Callable[[Path, Requirement], None], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of packages as `pip install` of the wheel leaves it, without extras."""
    site = tmp_path_factory.mktemp("bare")
    install(site, Requirement("ebbtide"))
    return site


def _run(site: Path, *words: str, cwd: Path, status: int) -> CompletedProcess[str]:
    """A command where nothing but the standard library and these packages can be imported."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), "PYTHONPATH": str(site)}
    return ran(sys.executable, "-S", "-P", "-m", "ebbtide", *words, cwd=cwd, env=environment, status=status)


@pytest.fixture(scope="session")
def stacks(bare: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's stacks, away from the repository's packages, and the profile of one."""
    directory = tmp_path_factory.mktemp("stacks")
    for file in (ROOT / "Pulumi.yaml", *ROOT.glob("Pulumi.*.yaml")):
        shutil.copy(file, directory)
    (directory / "__main__.py").write_text("import pulumi\n")
    _run(bare, "profile", "dev", "--out", "profile.json", cwd=directory, status=0)
    return directory


@pytest.fixture
def project(stacks: Path, tmp_path: Path) -> Path:
    """A copy of the stacks for a test."""
    return shutil.copytree(stacks, tmp_path / "project")


_JOB = ("--image", "busybox", "--pool", "t4-spot", "--gpus", "4", "--memory", "40Gi")


@pytest.mark.parametrize(
    ("words", "extras"),
    [
        (["preview", "dev"], "gke"),
        (["preview", "dev-aks", "--format", "json"], "gke"),
        (["rehearse", "dev"], "gke,rehearse"),
        (["rehearse", "--tools"], "gke,rehearse"),
        (["replay", "jobs.csv", "dev"], "gke,rehearse,replay"),
        (["trace", "fetch"], "gke,rehearse,replay"),
        (["destroy", "dev"], "gke,cluster,clouds"),
        (["quota", "dev", "--format", "json"], "gke,clouds"),
        (["prices", "refresh", "dev-aks"], "gke,clouds"),
        (["follow", "train"], "cluster"),
        (["job", "train", "--profile", "profile.json", *_JOB, "--submit"], "cluster"),
        (["sweep", "train", "--profile", "profile.json", *_JOB, "--set", "seed=1,2", "--submit"], "cluster"),
    ],
    ids=" ".join,
)
def test_a_command_names_its_extras(bare: Path, project: Path, words: list[str], extras: str) -> None:
    """A command that needs an extra says which, all of them at once, and how to install them."""
    done = _run(bare, *words, cwd=project, status=2)
    document = json.loads(done.stdout) if "json" in words else None
    assert document is None or document["errors"][0]["message"] in done.stderr
    assert "Traceback" not in done.stderr
    assert "ModuleNotFoundError" not in done.stderr
    assert "Install it with: uv pip install --python " in done.stderr
    brought = {
        "gke": "pulumi-gcp<11",
        "rehearse": "./ebbtide_rehearsal-",
        "replay": "./kueue_replay-",
        "cluster": "kubernetes>=30",
    }
    assert all(brought.get(extra, "azure-identity>=") in done.stderr for extra in extras.split(","))
    assert not re.search(r"\bebbtide(-rehearsal|\[)", done.stderr)
    assert ("write aks instead of gke" in done.stderr) == extras.startswith("gke")


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["schema"],
        ["schema", "preview"],
        ["init", "new", "--project", "acme-ml", "--machines", "t4"],
        ["profile", "dev"],
        ["job", "train", "--profile", "profile.json", *_JOB],
        ["sweep", "train", "--profile", "profile.json", *_JOB, "--set", "seed=1,2"],
        ["logs", "--profile", "profile.json", "--namespace", "vision", "--job", "train"],
    ],
    ids=" ".join,
)
def test_the_other_commands_need_no_extra(bare: Path, project: Path, words: list[str]) -> None:
    """Everything that needs neither Pulumi nor a cluster works with the wheel's own requirements."""
    done = _run(bare, *words, cwd=project, status=0)
    assert done.stderr == ""
    assert done.stdout


def _refused(project: Path, program: str, before: str) -> str:
    """Return the message of a preview of a program, after other code in the process."""
    (project / "__main__.py").write_text(program)
    code = f"{before}; from ebbtide.cli import main; main()"
    return ran(sys.executable, "-c", code, "preview", "dev", "--cwd", project, status=2).stderr


@pytest.mark.parametrize("provider", ["pulumi_gcp", "pulumi_azure_native"])
def test_a_program_that_lacks_its_provider(project: Path, provider: str) -> None:
    """The message names the provider's extra when Pulumi is installed and the program's provider is not."""
    message = _refused(project, f"import {provider}\n", f"import sys; sys.modules[{provider!r}] = None")
    extra = {"pulumi_gcp": "gke", "pulumi_azure_native": "aks"}[provider]
    assert message.startswith(f"`ebbtide preview` needs {provider}, which is not installed. Install it ")
    assert f"-e '.[{extra}]'" in message


def test_a_package_that_is_too_old(project: Path) -> None:
    """A preview with an older Pulumi than Ebbtide requires names both versions and the command to install a
    newer one."""
    older = "metadata.version = lambda name, of=metadata.version: '3.270.1' if name == 'pulumi' else of(name)"
    program = "from ebbtide.components import program\n"
    message = _refused(project, program, f"from importlib import metadata; {older}")
    assert "pulumi is 3.270.1, and Ebbtide needs 3.271 or later. Install it with: " in message
    assert "pip install 'pulumi>=3.271'" in message
    assert "Traceback" not in message


def test_uv_records_the_origin(wheel: Path, tmp_path: Path) -> None:
    """In an environment that uv has made from the wheel, the command is uv's and names the wheel."""
    uv, python = Path(sys.executable).with_name("uv"), tmp_path / ".venv" / "bin" / "python"
    install = ["pip", "install", "--no-deps", "--no-index", "--python", python, wheel]
    for command in (["venv", "--python", sys.executable, ".venv"], install):
        ran(uv, "--quiet", "--offline", *command, cwd=tmp_path)
    code = "from ebbtide.text import install_command; print(install_command('kfp'))"
    printed = ran(python, "-c", code, cwd=tmp_path).stdout
    assert printed == f"uv pip install --python .venv/bin/python '{wheel}[kfp]'\n"


def test_extras_are_those_of_the_package() -> None:
    """Every extra of pyproject.toml is known with a module for each distribution that it brings."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras: dict[str, list[str]] = tomllib.loads(text)["project"]["optional-dependencies"]
    expected = {
        extra: {_MODULES.get(name := _name(item), name.replace("-", ".")) for item in requirements}
        for extra, requirements in extras.items()
    }
    expected["rehearse"].add("ebbtide_rehearsal")
    expected["replay"].add("kueue_replay")
    assert {extra: set(names) for extra, names in MODULES.items()} == expected
    assert {extra for needed in OF_COMMANDS.values() for extra in needed} <= extras.keys()


_MODULES = {"googleapis-common-protos": "google.rpc", "python-dxf": "dxf"} | {
    name: name.replace("-", "_") for name in ("pulumi-azure-native", "pulumi-gcp", "pulumi-kubernetes")
}
"""Modules of distributions whose name is not that of the module with dots."""


def test_no_distribution_needs_a_name_that_we_do_not_own() -> None:
    """No wheel requires Ebbtide or one of its distributions, which pip would look up on an index."""
    for directory in (ROOT, ROOT / "rehearsal", ROOT / "kueue-replay"):
        project = tomllib.loads((directory / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        extras: dict[str, list[str]] = project.get("optional-dependencies", {})
        required = [*project["dependencies"], *(item for items in extras.values() for item in items)]
        assert [item for item in required if item.startswith(("ebbtide", "kueue"))] == []


def _name(requirement: str) -> str:
    return re.split(r"[^\w-]", requirement)[0]


def test_all_distributions_have_one_version() -> None:
    """The rehearsal and the replay run the internals of the core of their own version."""
    for package in ("rehearsal/ebbtide_rehearsal", "kueue-replay/kueue_replay"):
        text = (ROOT / package / "__init__.py").read_text(encoding="utf-8")
        assert f'__version__ = "{ebbtide.__version__}"' in text
