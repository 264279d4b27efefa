import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ebbtide.work.jobs import job, job_over_nodes
from ebbtide.work.logs import log_link, log_query
from ebbtide.work.sweeps import sweep
from tests.commands import ebbtide, refused
from tests.repository import ROOT
from tests.unit.work.clusters import DEV, DEV_AKS


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A file with the dev stack's profile."""
    path = tmp_path / "profile.json"
    path.write_text(DEV.json())
    return path


def test_manifests_as_json(profile: Path) -> None:
    """`--format json` prints the objects as a List, which kubectl applies."""
    done = ebbtide(
        "job", "a", "--profile", str(profile), "--image", "i", "--pool", "cpu-spot", "--format", "json"
    )
    document = json.loads(done.stdout)
    assert (document["kind"], [item["kind"] for item in document["items"]]) == ("List", ["Job"])


@pytest.mark.parametrize("queue", ["a100", "big", "vision/big"])
def test_default_image_of_a_queue(profile: Path, queue: str) -> None:
    """A queue's default image follows from each of its names."""
    done = ebbtide("job", "train", "--profile", str(profile), "--queue", queue, "--gpus", "1", "--cpu", "1",
                    "--memory", "1Gi")  # fmt: skip
    assert done.returncode == 0, done.stderr
    (container,) = yaml.safe_load(done.stdout)["spec"]["template"]["spec"]["containers"]
    assert container["image"] == DEV.default_image(queue="a100")


_EVERYTHING = """job train --image busybox --pool t4-spot -n lab --gpus 4 --cpu 2 --memory 40Gi --retries 5
    --fail-on 42 --fail-on 3 --ttl 2h --max-run 6h --env A=1 --env B=x=y --service-account vision
    --secret-env WANDB_API_KEY=tracker/api-key --secret-volume tracker=/secrets --shared-memory 8Gi
    --image-pull-secret ours --image-pull-secret theirs --run-as-user 1000 --volume shared --mount-path /work
    -- python train.py --fast"""


def test_a_job_with_everything(profile: Path) -> None:
    """The same manifest as from Python with the same fields."""
    done = ebbtide(*_EVERYTHING.split(), EBBTIDE_PROFILE=str(profile))
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout) == job(
        DEV,
        name="train",
        image="busybox",
        pool="t4-spot",
        namespace="lab",
        gpus=4,
        cpu="2",
        memory="40Gi",
        retries=5,
        fail_on=[42, 3],
        ttl="2h",
        max_run="6h",
        env={"A": "1", "B": "x=y"},
        secret_env={"WANDB_API_KEY": "tracker/api-key"},
        secret_volumes={"tracker": "/secrets"},
        shared_memory="8Gi",
        image_pull_secrets=["ours", "theirs"],
        service_account="vision",
        run_as_user=1000,
        volume="shared",
        mount_path="/work",
        command=["python", "train.py", "--fast"],
    )


def test_a_job_over_several_nodes(profile: Path) -> None:
    """The Job and its Service, as Python makes them, in one stream for kubectl."""
    call = ("job", "train", "--image", "busybox", "--pool", "t4-spot", "--gpus", "4", "--nodes", "4")
    done = ebbtide(*call, EBBTIDE_PROFILE=str(profile))
    assert done.returncode == 0, done.stderr
    made = job_over_nodes(DEV, 4, name="train", image="busybox", pool="t4-spot", gpus=4)
    assert list(yaml.safe_load_all(done.stdout)) == list(made)


def test_options_are_shared() -> None:
    """A sweep has every option of a task that a Job has, each with a sentence."""
    job_help, sweep_help = (ebbtide(command, "--help", COLUMNS="200").stdout for command in ("job", "sweep"))
    shared = "gpus priority shared-memory image-pull-secret secret-env secret-volume submit context fail-on"
    for option in (f"--{name}" for name in shared.split()):
        assert option in job_help
        assert option in sweep_help


def test_no_gpus_on_a_gpu_pool(profile: Path) -> None:
    """Is refused in a sentence, unless zero is meant."""
    call = ("job", "train", "--image", "busybox", "--pool", "t4-spot")
    error = refused(*call, EBBTIDE_PROFILE=str(profile))
    assert error.startswith("gpus is missing, and pool t4-spot has only nodes with 4 nvidia-tesla-t4")
    assert "gpus=0" in error
    assert ebbtide(*call, "--gpus", "0", EBBTIDE_PROFILE=str(profile)).returncode == 0


def test_a_secret_is_never_printed(profile: Path) -> None:
    """Neither as a variable nor where a reference is expected."""
    call = ("job", "train", "--image", "busybox", "--pool", "cpu-spot")
    for option in ("--env", "--secret-env"):
        error = refused(*call, option, "WANDB_API_KEY=5f0c97", EBBTIDE_PROFILE=str(profile))
        assert "5f0c97" not in error
        assert "WANDB_API_KEY=" in error
    assert "5f0c97" not in refused(*call, "--env", "=5f0c97", EBBTIDE_PROFILE=str(profile))


def test_a_sweep(profile: Path) -> None:
    """Values that read as numbers are numbers; the profile is found by the environment."""
    done = ebbtide(
        *("sweep", "seeds", "--image", "busybox", "--pool", "cpu-spot", "--set", "lr=0.1,1e-2"),
        *("--set", "opt=adam,sgd", "--set", "fast=true", "--parallelism", "2", "--max-failed", "1"),
        EBBTIDE_PROFILE=str(profile),
    )
    assert done.returncode == 0, done.stderr
    grid = {"lr": [0.1, 0.01], "opt": ["adam", "sgd"], "fast": [True]}
    made = sweep(DEV, grid, parallelism=2, max_failed=1, name="seeds", image="busybox", pool="cpu-spot")
    assert yaml.safe_load(done.stdout) == made


def test_logs(profile: Path) -> None:
    """The link first, then the query; where there is no link, the query alone; the JSON itself will do."""
    done = ebbtide("logs", "--profile", str(profile), "--namespace", "vision", "--job", "train")
    link = log_link(DEV, namespace="vision", job="train")
    assert done.stdout == f"{link}\n\n{log_query(DEV, namespace='vision', job='train')}\n"
    alone = ebbtide("logs", "--namespace", "vision", "--pod", "a", EBBTIDE_PROFILE=DEV_AKS.json())
    assert alone.stdout == log_query(DEV_AKS, namespace="vision", pod="a") + "\n"
    for words, error in (
        (("train", "--job", "train"), "train and --job are both given: write one of them."),
        (("--follow",), "--follow needs the name of a workload."),
        (("--index", "1"), "--index needs the name of a workload."),
    ):
        assert refused("logs", *words, EBBTIDE_PROFILE=str(profile)) == f"{error}\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--env", "A"), "--env has 'A'; write NAME=VALUE."),
        (("--env", "A=1", "--env", "A=2"), "--env has A twice."),
        (
            ("--mount", "s3:x:/d"),
            "--mount has 's3:x:/d'; write ADDRESS:PATH, such as gs://bucket/data:/data.",
        ),
        (
            ("--secret-env", "B", "--env", "A", "--cpu", "x"),
            (
                "--env has 'A'; write NAME=VALUE.\n--secret-env has 'B'; write NAME=VALUE.\n"
                "cpu is 'x', which is not an amount of CPU: write cores, such as 4, or 500m."
            ),
        ),
    ],
)
def test_a_pair_that_is_none(args: tuple[str, ...], message: str, profile: Path) -> None:
    """Each is shown as it was written, with the faults of the task."""
    call = ("job", "train", "--image", "busybox", "--pool", "cpu-spot", *args)
    assert refused(*call, EBBTIDE_PROFILE=str(profile)) == message + "\n"


@pytest.mark.parametrize("command", ["job", "sweep", "logs"])
def test_nothing_slow_is_loaded(command: str, profile: Path) -> None:
    """A command with a profile needs neither Pulumi nor the declaration's model."""
    code = (
        f"import sys; sys.argv = ['ebbtide', {command!r}, *{_ARGUMENTS[command]!r}]\n"
        "from ebbtide.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        # Typer loads pydantic for itself where it is installed.
        "declared = {'ebbtide.declaration.model', 'ebbtide.declaration.catalog'}\n"
        "slow = {'pulumi', 'rich', 'kfp', *declared} & set(sys.modules)\n"
        "assert not slow, slow"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "EBBTIDE_PROFILE": str(profile)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


_ARGUMENTS = {
    "job": ["train", "--image", "busybox", "--pool", "cpu-spot"],
    "sweep": ["train", "--image", "busybox", "--pool", "cpu-spot", "--set", "lr=1,2"],
    "logs": ["--namespace", "vision", "--pod", "a"],
}
