"""Every `pulumi` command of the documentation, run by the real `pulumi` from a copy of the checkout.

The Kubernetes provider is real, and the language host too: see `terminal`.
"""

import shlex
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
import yaml

from ebbtide.placement import Profile
from rehearsal.tests.engine.sites import checkout_in
from rehearsal.tests.engine.terminal import Terminal, terminal_on_gke
from tests.pages import commands, of_kind
from tests.repository import ROOT, commit_all, git

pytestmark = pytest.mark.engine

_RUN = [
    "pulumi stack init first",
    "pulumi stack output kubeconfig --show-secrets --stack first > kubeconfig.json",
    "pulumi stack rm first --preserve-config",
    "pulumi stack init dev",
    "pulumi up",
]
"""The commands of the pages that are run here."""

_NOT_RUN = {
    "pulumi login 'azblob://state?storage_account=acmeml'": "it asks Azure for the container",
    **dict.fromkeys(
        (
            "pulumi stack init dev-aks",
            "pulumi stack init shared",
            "pulumi stack output kubeconfig --show-secrets --stack dev > kubeconfig.json",
            "pulumi stack output kubeconfig --show-secrets --stack dev-aks > kubeconfig.json",
            "pulumi stack output placementProfile --stack dev > profile.txt",
        ),
        "the same command is run for another stack",
    ),
    "pulumi login gs://acme-ml-pulumi": "it asks Google Cloud for the bucket; a directory is used instead",
    'pulumi new "$PWD/template/yaml" --dir ../my-cluster --force --generate-only': "test_languages.py does",
    "pulumi package add ../ebbtide/plugin": "it needs a newer Python language host than can be built",
    "pulumi config set project acme-ml": "test_languages.py runs it",
    "pulumi preview --stack dev --policy-pack policies": "test_policy_pack.py runs it",
    "pulumi stack select dev --create --secrets-provider gcpkms://projects/acme-ml/locations/us-central1"
    "/keyRings/pulumi/cryptoKeys/state": "it asks Google Cloud for the key",
    "pulumi stack export --stack dev --file state.json": "test_predicted_changes.py compares with exports",
    "pulumi stack rm pr-42 --yes --preserve-config": "the same command is run without --yes",
}
"""The others, each with the reason."""


@pytest.fixture
def terminal(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Terminal]:
    """A copy of the checkout with the stack of the page on a first cluster on GKE, and a fake cloud."""
    root = checkout_in(tmp_path)
    shutil.copytree(ROOT / "template", root / "template")
    first = next(block for block in of_kind("yaml") if block.page == "docs/gke.md").text
    (root / "Pulumi.first.yaml").write_text(f"# Kept.\n{first}", encoding="utf-8")
    with terminal_on_gke(tmp_path, root, request.node) as terminal:
        yield terminal


def test_every_command_is_known() -> None:
    """A `pulumi` command of a page is run by this file, or named here with the reason why it is not."""
    shown = {command for _, command in commands() if shlex.split(command)[0] == "pulumi"}
    assert shown == {*_RUN, *_NOT_RUN}


def test_the_first_cluster(terminal: Terminal) -> None:
    """The page's commands from `pulumi login` to `pulumi stack rm`, as they are printed."""
    terminal.run("pulumi login file://~")
    terminal.run("pulumi stack init first")
    written = (terminal.root / "Pulumi.first.yaml").read_text(encoding="utf-8")
    assert "encryptionsalt:" in written
    terminal.run("pulumi up --stack first")
    unchanged = terminal.run("pulumi up --stack first")
    printed = [line for line in unchanged.splitlines() if "placementProfile" in line]
    assert len(printed) == 1
    assert "sha256:" in printed[0]
    assert len(printed[0]) < 200
    terminal.run("pulumi stack output kubeconfig --show-secrets --stack first > kubeconfig.json")
    terminal.run("pulumi stack output placementProfile --stack first > profile.txt")
    kubeconfig = yaml.safe_load((terminal.root / "kubeconfig.json").read_text(encoding="utf-8"))
    assert kubeconfig["users"][0]["user"]["exec"]["command"] == "gke-gcloud-auth-plugin"
    profile = Profile.load(terminal.root / "profile.txt")
    assert [pool.name for pool in profile.pools] == ["system", "cpu-spot"]
    terminal.run("pulumi destroy --stack first")
    terminal.run("pulumi stack rm first --preserve-config")
    assert (terminal.root / "Pulumi.first.yaml").read_text(encoding="utf-8") == written


def test_removing_a_stack_removes_its_file(terminal: Terminal) -> None:
    """Without `--preserve-config` the declaration is deleted with the stack, which is why pages name it."""
    terminal.run("pulumi login file://~ && pulumi stack init first && pulumi stack rm first")
    assert not (terminal.root / "Pulumi.first.yaml").exists()


def test_a_project_from_the_template(terminal: Terminal) -> None:
    """`pulumi new` writes the template, and installs nothing here."""
    project = terminal.root.parent / "my-cluster"
    project.mkdir()
    (project / "ebbtide.whl").touch()
    new = 'pulumi new "$PWD/template/gke" --dir ../my-cluster --force'
    terminal.run(f"pulumi login file://~ && {new} --generate-only")
    workflow = (project / ".github/workflows/stack.yml").read_text(encoding="utf-8")
    assert workflow == (ROOT / ".github/workflows/stack.yml").read_text(encoding="utf-8")
    at = Terminal(project, terminal.environment)
    at.run("pulumi stack init dev && pulumi config set ebbtide:owner my-team")
    assert "ebbtide:owner: my-team" in (project / "Pulumi.dev.yaml").read_text(encoding="utf-8")


def test_a_project_of_init(terminal: Terminal) -> None:
    """A second user of a project of `ebbtide init` finds its stack in a clone, without a login."""
    directory = terminal.root.parent
    state, project, clone = (directory / name for name in ("of-the-team", "my-cluster", "clone"))
    state.mkdir()
    options = f"--project acme-ml --machines t4,e2-standard-4 --owner ada --backend {state.as_uri()}"
    terminal.run(f"ebbtide init {project} {options}")

    def user(name: str, at: Path) -> Terminal:
        own = {"PULUMI_BACKEND_URL": "", "PULUMI_CREDENTIALS_PATH": str(directory / name)}
        return Terminal(at, terminal.environment | own | {"PYTHONPATH": str(ROOT)})

    ada = user("ada", project)
    ada.run("pulumi stack init dev && pulumi up --stack dev")
    assert "my-cluster-dev" in ada.run("pulumi stack output clusterName --stack dev")
    commit_all(project)
    git(directory, "clone", "--quiet", str(project), str(clone))
    grace = user("grace", clone)
    assert "my-cluster-dev" in grace.run("ebbtide preview dev")
    assert '"dev"' in grace.run("pulumi stack ls --json")
    grace.run("pulumi preview --stack dev --expect-no-changes")
    grace.run("pulumi destroy --stack dev")
