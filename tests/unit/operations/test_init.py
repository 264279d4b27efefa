"""Projects that `ebbtide init` writes, and the answers that it refuses."""

import os
import pty
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ebbtide.cli import app
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.declaration.catalog.locations import Locations
from ebbtide.declaration.catalog.machine_offers import accelerator_types, machine_offers
from ebbtide.declaration.catalog.machines import find_machine, machine_names
from ebbtide.errors import EbbtideError
from ebbtide.operations.init import (
    Answers,
    check,
    location,
    machine_offer,
    machines_of,
    offers_in,
    project_files,
    write_project,
)
from ebbtide.values.cloud_kind import CloudKind
from tests.commands import ebbtide_with
from tests.repository import ROOT

_ACCOUNTS = {CloudKind.GKE: "acme-ml", CloudKind.AKS: "00000000-0000-0000-0000-000000000001"}


def _answers(cloud: CloudKind, machines: str, **others: str) -> Answers:
    offers = machines_of(cloud, machines)
    where = others.pop("location", "") or location(cloud, offers)
    rest = {"owner": "ada", "account": _ACCOUNTS[cloud]} | others
    return Answers(cloud=cloud, machines=offers, location=where, **rest)


def _run(*words: str, cwd: Path, answers: str | None = None) -> tuple[int, str]:
    """The command's exit status, and its output; with answers, on a terminal."""
    if not answers:
        piped = ebbtide_with(os.environ, "init", *words, cwd=cwd)
        return piped.returncode, piped.stdout + piped.stderr
    ours, theirs = pty.openpty()
    os.write(ours, answers.encode())
    done = subprocess.run(
        [sys.executable, "-m", "ebbtide", "init", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    return done.returncode, done.stdout


@pytest.mark.parametrize("cloud", CloudKind)
def test_every_accelerator_has_a_valid_project(cloud: CloudKind) -> None:
    """An accelerator by its name alone, and some machine types, are spot pools from zero nodes where the
    machines are offered."""
    locations = Locations(cloud)
    others = [name for name in machine_names(cloud) if not name.startswith("Standard_B")]
    machines = [*accelerator_types(cloud), *random.Random(cloud).sample(others, 8)]  # noqa: S311
    for name in machines:
        answers = _answers(cloud, name)
        files = project_files("my-cluster", answers)
        check(files, answers)
        (offer,) = answers.machines
        machine = find_machine(cloud, offer.machine)
        assert machine is not None
        offering = locations.offering(machine.family, offer.accelerator)
        assert offering is None or locations.offers(offering, answers.location, offer.machine)
        assert name in (offer.machine, offer.accelerator)
        assert "capacity: spot, nodes: {max: " in files["Pulumi.dev.yaml"]
        assert "min: " not in files["Pulumi.dev.yaml"].splitlines()[-1]


def test_the_machine_of_an_accelerator_is_cheap_and_ample() -> None:
    """No cheaper machine type on spot has 4 vCPUs and 12 GiB for each T4."""
    offer = machine_offer(CloudKind.GKE, "2 x T4")
    assert (offer.count, offer.accelerator) == (2, "nvidia-tesla-t4")
    others = [
        it for it in machine_offers(CloudKind.GKE, gpu="t4") if (it.count, it.spot is None) == (2, False)
    ]
    ample = [it for it in others if it.vcpus >= 8 and it.memory_gib >= 24]
    assert offer.spot == min(it.spot or 0 for it in ample)


def test_a_location_offers_all_machines() -> None:
    """A zone that lacks one of the machines is not chosen, and without any the message names the rarest."""
    assert _answers(CloudKind.GKE, "v6e").location != _answers(CloudKind.GKE, "t4").location
    assert region_of(_answers(CloudKind.GKE, "v6e,t4").location) in Locations(CloudKind.GKE).regions()
    everything = ",".join(accelerator_types(CloudKind.GKE))
    with pytest.raises(EbbtideError, match=r"no location offers all of these: .* is only in "):
        _answers(CloudKind.GKE, everything)


def test_backend_and_key_are_written(tmp_path: Path) -> None:
    """The backend is in the project's file and the key in the stack's, where the next user's `pulumi` reads
    them."""
    url, key = "gs://acme-ml-pulumi", "gcpkms://projects/acme-ml/locations/us/keyRings/a/cryptoKeys/b"
    answers = _answers(CloudKind.GKE, "t4", backend=url, secrets_provider=key)
    files = project_files("my-cluster", answers)
    check(files, answers)
    write_project(tmp_path, files)
    assert f'backend:\n  url: "{url}"\n' in (tmp_path / "Pulumi.yaml").read_text(encoding="utf-8")
    assert f'\nsecretsprovider: "{key}"\n' in (tmp_path / "Pulumi.dev.yaml").read_text(encoding="utf-8")


def test_every_wrong_answer_is_reported() -> None:
    """Each has its option; the declaration's own rules say what to write instead."""
    answers = _answers(
        CloudKind.GKE, "t4", account="Acme_ML", owner="A B", location="mars", backend="gcs://acme"
    )
    with pytest.raises(EbbtideError) as caught:
        check(project_files("my-cluster", answers), answers)
    lines = [line.partition(":")[0] for line in str(caught.value).splitlines()]
    assert sorted(lines) == ["--backend", "--location", "--owner", "--project"]


@pytest.mark.parametrize(
    ("cloud", "written", "message"),
    [
        ("gke", "t5, Standard_D8s_v5", "type or accelerator t5.*\n--machines: Standard_D8s_v5 is .* of AKS"),
        ("gke", "3 x l4", "no machine type of GKE has 3 nvidia-l4. Write 1, 2, 4 or 8 of them"),
        ("gke", "n1-standart-4", "did you mean n1-standard-4?"),
        ("aks", " , ", "it names no machine"),
    ],
)
def test_unknown_machines(cloud: str, written: str, message: str) -> None:
    """Every unknown item is named, with the nearest name or the numbers that there are."""
    with pytest.raises(EbbtideError, match=message):
        machines_of(CloudKind(cloud), written)


def test_azure_refuses_spot_of_burstable_machines() -> None:
    """The rules of the declaration apply to what is written."""
    answers = _answers(CloudKind.AKS, "Standard_B4ms")
    with pytest.raises(EbbtideError, match=r"--machines: Azure does not offer Standard_B4ms as spot"):
        check(project_files("my-cluster", answers), answers)


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    """The existing files are all named, and nothing is written."""
    for name in ("README.md", "Pulumi.dev.yaml"):
        (tmp_path / name).write_text("ours", encoding="utf-8")
    status, output = _run(str(tmp_path), "--project", "acme-ml", "--machines", "t4", cwd=tmp_path)
    assert status == 2
    assert output.startswith("Pulumi.dev.yaml and README.md exist in ")
    assert {path.name for path in tmp_path.iterdir()} == {"README.md", "Pulumi.dev.yaml"}


def test_missing_answers_without_a_terminal(tmp_path: Path) -> None:
    """All are named at once, as options."""
    status, output = _run("new", cwd=tmp_path)
    assert status == 2
    assert output.startswith("--cloud, --project or --subscription and --machines are missing")
    status, output = _run("new", "--subscription", "a", "--cloud", "gke", cwd=tmp_path)
    assert (status, "--subscription is of AKS, and --cloud is gke" in output) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_questions_on_a_terminal(tmp_path: Path) -> None:
    """Three questions; a wrong answer is explained and asked again."""
    account = _ACCOUNTS[CloudKind.AKS]
    status, output = _run("new", cwd=tmp_path, answers=f"gcp\naks\n{account}\nt9\nt4, Standard_D8as_v5\n")
    assert status == 0, output
    assert "Write gke for Google Cloud, or aks for Azure." in output
    assert "AKS has no machine type or accelerator t9" in output
    assert "Standard_NC4as_T4_v3 with 1 x nvidia-t4: spot" in output
    assert "cd new && pulumi install" in output
    written = (tmp_path / "new/Pulumi.dev.yaml").read_text(encoding="utf-8")
    assert "- {name: t4spot, machine: Standard_NC4as_T4_v3, capacity: spot, nodes: {max: 4}}" in written
    assert "- {name: cpuspot, machine: Standard_D8as_v5, capacity: spot, nodes: {max: 10}}" in written


def test_prices_are_of_the_chosen_region(tmp_path: Path) -> None:
    """The machines are shown with the prices of the location, not with those of the cheapest region."""
    where = "europe-west4-a"
    (offer,) = machines_of(CloudKind.GKE, "t4")
    (own,) = offers_in(where, [offer])
    assert (own.region, own.machine) == ("europe-west4", offer.machine)
    assert own.spot
    assert own.spot != offer.spot
    words = ("new", "--project", "acme-ml", "--machines", "t4", "--location", where)
    status, output = _run(*words, cwd=tmp_path)
    assert (status, f"{own.spot:.2f} $/h each in europe-west4" in output) == (0, True), output


@pytest.mark.parametrize("cloud", CloudKind)
def test_the_stack_of_a_pull_request_survives_a_renamed_pool(cloud: CloudKind) -> None:
    """The file extends the stack without naming its pools."""
    answers = _answers(cloud, "t4")
    files = project_files("my-cluster", answers)
    renamed = files["Pulumi.dev.yaml"].replace("t4-spot", "gpu-spot").replace("t4spot", "gpuspot")
    assert renamed != files["Pulumi.dev.yaml"]
    check({**files, "Pulumi.dev.yaml": renamed}, answers)


@pytest.mark.parametrize("cloud", CloudKind)
def test_the_readme_has_the_cost_of_an_idle_cluster(cloud: CloudKind, tmp_path: Path) -> None:
    """The amounts in the project's README are those of its preview."""
    write_project(tmp_path, project_files("my-cluster", _answers(cloud, "t4")))
    done = CliRunner().invoke(app, ["preview", "--cwd", str(tmp_path)])
    shown = " ".join(done.stdout.split())
    found = re.search(r"Cost (\S+) \$/h idle.* \$/month (\d+) idle", shown)
    assert found, shown
    readme = " ".join((tmp_path / "README.md").read_text(encoding="utf-8").split())
    assert f"costs {found[1]} $/h at list prices, which is {found[2]} $ a month" in readme
