"""Every `pulumi` command of the documentation, run by the real `pulumi` from a copy of the checkout.

The language host is real too, in an older version (`pulumi-language-python` in the table of tools). It
takes the Python that is first on PATH, which is the test's own, and never creates an environment.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from ebbtide.placement import Profile
from ebbtide_rehearsal.cloud.gcp import Gcp
from ebbtide_rehearsal.cloud.protocol import serve
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.tools import ensure
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.engine.test_gke_topology import NoKubernetes
from tests.pages import commands, of_kind
from tests.repository import ROOT

pytestmark = pytest.mark.engine

_RUN = [
    "pulumi stack init dev",
    "pulumi up --stack dev",
    "pulumi stack output kubeconfig --show-secrets --stack dev > kubeconfig.json",
    "pulumi stack output placementProfile --stack dev > profile.json",
    "pulumi stack rm dev --preserve-config",
    'pulumi new "$PWD/template/gke" --dir ../my-cluster --force',
    "pulumi up",
    "pulumi destroy",
]
"""The commands of the pages that are run here."""

_NOT_RUN = {
    "pulumi login gs://acme-ml-pulumi": "it asks Google Cloud for the bucket; a directory is used instead"
}
"""The others, each with the reason."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """A shell in a copy of the checkout, where `pulumi` has a home and a backend of its own.

    Attributes:
        root: the copy.
        environment: the shell's.
    """

    root: Path
    environment: dict[str, str]

    def run(self, command: str) -> str:
        """Standard output of a command that succeeds; nothing can be answered, and nothing has to be."""
        done = subprocess.run(
            ["bash", "-c", command],  # noqa: S607 - the one that is first on PATH
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def _programs(directory: Path) -> Path:
    """A directory with the engine, the language host and the script that the host wants beside itself."""
    host, script = "pulumi-language-python", "pulumi-language-python-exec"
    tools = ensure(["pulumi", host, script], say=lambda _: None)
    directory.mkdir()
    (directory / "pulumi").symlink_to(tools.path("pulumi"))
    shutil.copy(tools.path(host), directory)
    shutil.copy(tools.path(script) / script, directory)
    (directory / script).chmod(0o755)
    return directory


@pytest.fixture
def terminal(tmp_path: Path) -> Generator[Terminal]:
    """A copy of the checkout whose stack dev is the smallest declaration of the README, and a fake cloud."""
    root = tmp_path / "checkout"
    for name in ("components", "ebbtide", "stacks", "template"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(ROOT / name, root)
    smallest = yaml.safe_load(next(block for block in of_kind("yaml") if block.page == "README.md").text)
    smallest["config"]["ebbtide:cluster"]["lifetime"] = {"hours": 8}
    (root / "Pulumi.dev.yaml").write_text("# Kept.\n" + yaml.safe_dump(smallest), encoding="utf-8")
    store = Store(tmp_path / "cloud.sqlite")
    served = {one.package: serve(one, store) for one in (Gcp(store, FakeControlPlanes()), NoKubernetes())}
    programs = _programs(tmp_path / "bin")
    (tmp_path / "state").mkdir()
    settings = {
        "HOME": str(tmp_path),
        "PATH": os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"])),
        # `pulumi` takes `~` from the system's list of users, not from HOME: state would stay in the real one.
        "PULUMI_BACKEND_URL": (tmp_path / "state").as_uri(),
        "PULUMI_HOME": str(tmp_path / ".pulumi"),
        "PULUMI_CONFIG_PASSPHRASE": "a passphrase that you keep",
        "PULUMI_DEBUG_PROVIDERS": ",".join(f"{name}:{port}" for name, (_, port) in served.items()),
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_SKIP_CONFIRMATIONS": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    try:
        yield Terminal(root, os.environ | settings)
    finally:
        for server, _ in served.values():
            server.stop(grace=None).wait()


def test_every_command_is_known() -> None:
    """A `pulumi` command of a page is run by this file, or named here with the reason why it is not."""
    shown = {command for _, command in commands() if shlex.split(command)[0] == "pulumi"}
    assert shown == {*_RUN, *_NOT_RUN}


def test_the_first_cluster(terminal: Terminal) -> None:
    """The README's commands from `pulumi login` to `pulumi stack rm`, as they are printed."""
    terminal.run("pulumi login file://~")
    terminal.run("pulumi stack init dev")
    written = (terminal.root / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    assert "encryptionsalt:" in written
    terminal.run("pulumi up --stack dev")
    terminal.run("pulumi stack output kubeconfig --show-secrets --stack dev > kubeconfig.json")
    terminal.run("pulumi stack output placementProfile --stack dev > profile.json")
    kubeconfig = yaml.safe_load((terminal.root / "kubeconfig.json").read_text(encoding="utf-8"))
    assert kubeconfig["users"][0]["user"]["exec"]["command"] == "gke-gcloud-auth-plugin"
    profile = Profile.load(terminal.root / "profile.json")
    assert [pool.name for pool in profile.pools] == ["system", "cpu"]
    terminal.run("pulumi destroy --stack dev")
    terminal.run("pulumi stack rm dev --preserve-config")
    assert (terminal.root / "Pulumi.dev.yaml").read_text(encoding="utf-8") == written


def test_removing_a_stack_removes_its_file(terminal: Terminal) -> None:
    """Without `--preserve-config` the declaration is deleted with the stack, which is why pages name it."""
    terminal.run("pulumi login file://~ && pulumi stack init dev && pulumi stack rm dev")
    assert not (terminal.root / "Pulumi.dev.yaml").exists()


def test_a_project_from_the_template(terminal: Terminal) -> None:
    """`pulumi new` from the template as it is printed, but for what it would install; then up and destroy."""
    project = terminal.root.parent / "my-cluster"
    project.mkdir()
    (project / "ebbtide.whl").touch()
    new = 'pulumi new "$PWD/template/gke" --dir ../my-cluster --force'
    terminal.run(f"pulumi login file://~ && {new} --generate-only")
    at = Terminal(project, terminal.environment | {"PYTHONPATH": str(ROOT)})
    at.run("pulumi stack init dev")
    for name, value in (("owner", "my-team"), ("project", "acme-ml"), ("location", "us-central1-a")):
        at.run(f"pulumi config set ebbtide:{name} {value}")
    at.run("pulumi up")
    assert "my-cluster-dev" in at.run("pulumi stack output clusterName")
    at.run("pulumi destroy")
