"""The command line: what it prints, where, and with what status."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from ebbtide.analysis.preview.preview_document import Preview
from ebbtide.cli import app
from ebbtide.placement import Profile
from tests.commands import ebbtide, refused, started
from tests.synth import ROOT

_PROGRAM = """
import pulumi
import pulumi_gcp as gcp

config = pulumi.Config()
gcp.storage.Bucket("data", name="data", location="US", labels={"p": config.require_secret("password")})
pulumi.export("password", config.require_secret("password"))
if config.get_bool("loud"):
    pulumi.log.error("too loud")
"""


@pytest.mark.parametrize(
    "words",
    [
        ("machines", "--region", "us-central1", "--region", "europe-west4"),
        ("run", "--queue", "t4", "--queue", "big", "--", "true"),
    ],
)
def test_an_option_of_one_value_is_given_once(words: tuple[str, ...]) -> None:
    """The last of several values does not win unseen."""
    wrong = f"{words[1]} takes one value, and is given several times. Write it once."
    assert wrong in " ".join(refused(*words).split())


def _project(directory: Path, dev: str, program: str = _PROGRAM) -> Path:
    (directory / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (directory / "Pulumi.dev.yaml").write_text(dev)
    (directory / "__main__.py").write_text(program)
    return directory


def test_help_loads_nothing_slow() -> None:
    """The measure that no busy machine disturbs: what is imported."""
    slow = "{'pulumi', 'pydantic', 'rich', 'yaml'}"
    code = f"import sys, ebbtide.cli; print(sorted({slow} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_no_command_is_a_question() -> None:
    """Ebbtide without a command lists the commands."""
    done = ebbtide()
    assert "preview" in done.stdout + done.stderr


def test_preview_as_text() -> None:
    """The preview without a stack is of dev, and plain text in a pipe."""
    done = ebbtide("preview")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ebbtide/dev: train-dev on GKE in us-central1-a; an offline preview\n")
    assert "\x1b[" not in done.stdout
    assert "Cost 0.12 $/h idle" in done.stdout
    assert done.stderr == ""
    assert "runs only pods that tolerate" in ebbtide("preview", "--values").stdout


def test_preview_as_json(tmp_path: Path) -> None:
    """The document, on standard output or in a file, and nothing besides."""
    done = ebbtide("preview", "dev-aks", "--format", "json")
    assert done.returncode == 0, done.stderr
    document = Preview.model_validate_json(done.stdout)
    assert (document.stack, document.pools[0].cloud) == ("dev-aks", "aks")
    assert document.outputs["kubeconfig"] == "[secret]"
    written = ebbtide("preview", "dev-aks", "--format", "json", "--out", tmp_path / "preview.json")
    assert (written.returncode, written.stdout) == (0, "")
    assert (tmp_path / "preview.json").read_text() == done.stdout


def test_preview_elsewhere(tmp_path: Path) -> None:
    """`--cwd` names the project, `--config-file` the declaration, whose name names the stack."""
    _project(tmp_path, "config: {password: p}")
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "Pulumi.review.yaml").write_text("config: {password: q}")
    done = ebbtide(
        "preview", "--config-file", other / "Pulumi.review.yaml", "--cwd", tmp_path, "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["stack"] == "review"
    named = ebbtide(
        "preview", "own", "--config-file", other / "Pulumi.review.yaml", "--format", "json", cwd=tmp_path
    )
    assert json.loads(named.stdout)["stack"] == "own"


def test_an_encrypted_secret_shows_as_a_secret(tmp_path: Path) -> None:
    """No passphrase is prompted for, and neither ciphertext nor placeholder is shown."""
    project = _project(
        tmp_path,
        "secretsprovider: passphrase\nencryptionsalt: v1:abc\nconfig: {password: {secure: v1:ciphertext}}\n",
    )
    for options in (["--values"], ["--format", "json"]):
        done = ebbtide("preview", "--cwd", project, *options)
        assert done.returncode == 0, done.stderr
        assert "[secret]" in done.stdout
        assert "ciphertext" not in done.stdout
        assert "encrypted-in-the-stack-file" not in done.stdout


def test_a_logged_error_is_something_found(tmp_path: Path) -> None:
    """The preview is shown, and the status says to look."""
    done = ebbtide("preview", "--cwd", _project(tmp_path, "config: {password: p, loud: true}"))
    assert done.returncode == 1
    assert "error: too loud" in done.stdout


def test_a_broken_mandatory_rule_is_something_found(tmp_path: Path) -> None:
    """The document is whole; the status is 1."""
    program = """
import pulumi

spec = {"containers": [{"name": "a", "image": "busybox"}]}
pulumi.CustomResource("kubernetes:core/v1:Pod", "tool", {"spec": spec})
"""
    done = ebbtide("preview", cwd=_project(tmp_path, "config: {}", program))
    assert done.returncode == 1, done.stderr
    assert "mandatory: fixed-versions, tool: The image busybox has no fixed version." in done.stdout
    assert "1 resource to create" in done.stdout


def test_what_a_program_prints_does_not_spoil_the_document(tmp_path: Path) -> None:
    """The program's output is a message of the document."""
    project = _project(tmp_path, "config: {password: p}", _PROGRAM + "print('hello')\n")
    document = json.loads(ebbtide("preview", "--cwd", project, "--format", "json").stdout)
    assert [message["text"] for message in document["messages"]] == ["hello"]


@pytest.mark.parametrize("args", [("preview", "--format", "xml"), ("preview", "--nonsense"), ("nonsense",)])
def test_a_wrong_call(args: tuple[str, ...]) -> None:
    """Status 2, and what there is to choose from."""
    assert refused(*args)


def test_the_profile_is_the_stacks_output(tmp_path: Path) -> None:
    """Derived from the declaration without Pulumi, the profile is what the program exports."""
    done = ebbtide("profile", "dev", "--out", tmp_path / "profile.json")
    assert (done.returncode, done.stdout) == (0, "")
    profile = Profile.load(tmp_path / "profile.json")
    preview = json.loads(ebbtide("preview", "dev", "--format", "json").stdout)
    assert profile.output() == preview["outputs"]["placementProfile"]


def test_the_profile_needs_no_pulumi(tmp_path: Path) -> None:
    """A machine that only makes pipelines has none."""
    for package in ("pulumi", "pulumi_gcp"):
        (tmp_path / f"{package}.py").write_text("raise ImportError('not installed')")
    done = started("profile", PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["version"] == "ebbtide.dev/profile/v2"


_OWN_PROGRAM = """
import pulumi
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.derive import profile

cluster = declare({
    "name": "theirs", "owner": "vision",
    "cloud": {"kind": "gke", "project": "acme-ml", "location": "us-central1-a"},
    "pools": [{"name": "system", "role": "system", "machine": "e2-standard-4", "nodes": {"max": 3}}],
})
"""


@pytest.mark.parametrize("form", ["output", "data", "json"])
def test_the_profile_of_another_program_is_what_it_exports(tmp_path: Path, form: str) -> None:
    """A program may declare its cluster anywhere, also where a stack's file declares another, and export the
    profile as an object."""
    exported = f'pulumi.export("placementProfile", profile(cluster).{form}())'
    file = (ROOT / "Pulumi.dev.yaml").read_text()
    done = ebbtide("profile", "--cwd", _project(tmp_path, file, _OWN_PROGRAM + exported))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["cluster"] == "theirs"


def test_a_program_without_a_profile(tmp_path: Path) -> None:
    """A program without a profile is an error that names the missing export."""
    error = refused("profile", "--cwd", _project(tmp_path, "", _OWN_PROGRAM))
    assert error.startswith("The program of shop/dev does not export `placementProfile`")
    assert 'pulumi.export("placementProfile", profile(cluster).output())' in error


@pytest.mark.parametrize(
    "value", ["'Pulumi.yaml'", "pulumi.Output.secret(profile(cluster).data())", "{'version': None}"]
)
def test_a_program_whose_output_is_no_profile(tmp_path: Path, value: str) -> None:
    """The name of a file, a secret, and other data are refused in a sentence."""
    exported = f'pulumi.export("placementProfile", {value})'
    error = refused("profile", "--cwd", _project(tmp_path, "", _OWN_PROGRAM + exported))
    assert "profile" in error


def test_the_profile_of_another_program_needs_pulumi(tmp_path: Path) -> None:
    """Without Pulumi, the message names the extra to install."""
    project = _project(tmp_path, "", _OWN_PROGRAM)
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "pulumi.py").write_text("raise ModuleNotFoundError('no pulumi', name='pulumi')")
    done = started("profile", "--cwd", project, PYTHONPATH=f"{hidden}{os.pathsep}{ROOT}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install -e '.[gke]'" in done.stderr


def test_the_stack_as_an_option(tmp_path: Path) -> None:
    """Every command with a stack takes it as an argument or as --stack, but not two different ones."""
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    for words in (["other"], ["--stack", "other"], ["-s", "other"], ["other", "--stack", "other"]):
        done = CliRunner().invoke(app, ["profile", *words, "--cwd", str(tmp_path)])
        assert (done.exit_code, done.stderr.partition(":")[0]) == (2, "There is no stack other")
    differing = CliRunner().invoke(app, ["profile", "dev", "--stack", "other", "--cwd", str(tmp_path)])
    assert differing.exit_code == 2
    assert "The stack is dev, and --stack is other." in " ".join(differing.stderr.split())
    commands = get_command(app).commands.values()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
    for command in commands:  # pyright: ignore[reportUnknownVariableType]
        names = {param.name for param in command.params}  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        assert ("stack" in names) == ("stack_option" in names)
