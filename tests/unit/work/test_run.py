"""Runs of a folder: their objects, the shell that unpacks the code, and what is refused."""

import base64
import io
import json
import re
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ebbtide.cli.run import UNRECORDED
from ebbtide.in_pods.storage import write_once
from ebbtide.placement import Profile
from ebbtide.placement.profile import TeamProfile
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import Object
from ebbtide.work.arguments import is_label
from ebbtide.work.errors import WorkloadError
from ebbtide.work.jobs import job_over_nodes
from ebbtide.work.runs import code
from ebbtide.work.runs.code import Storage, storage_of, uploaded
from ebbtide.work.runs.folder import application, name_of, read_folder
from ebbtide.work.runs.run import label_value, plan
from ebbtide.work.sweeps import sweep
from ebbtide.work.tasks import CodeIn
from tests.buckets import Bucket, bucket
from tests.declarations import AKS, GKE, Declaration, changed
from tests.manifests import assert_valid
from tests.unit.work.clusters import DEV, DEV_AKS, container_of, derived

__all__ = ["bucket"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a program and a module."""
    root = tmp_path / "My_Model"
    (root / "lib").mkdir(parents=True)
    (root / "train.py").write_text("import sys; print(open('lib/data.txt').read(), sys.argv[1:])")
    (root / "lib/data.txt").write_text("data")
    return root


def _run(root: Path, profile: Profile = DEV, **fields: Any) -> tuple[Object, ...]:
    given: Any = {
        "image": "python",
        "pool": _pool(profile, "t4-spot"),
        "gpus": 1,
        "command": ["python", "train.py"],
        **fields,
    }
    made = plan(profile, read_folder(root), "ada@acme.example", {"gpus": 1}, **given)
    return made.job, *made.dependents


def _pool(profile: Profile, name: str) -> str:
    """Return a pool's name in the stack dev of either cloud: AKS allows no hyphens."""
    return name.replace("-", "") if profile is DEV_AKS else name


@pytest.mark.parametrize("profile", [DEV, DEV_AKS], ids=["gke", "aks"])
def test_objects(root: Path, profile: Profile) -> None:
    """The Job has the code's ConfigMap, the labels, and annotations with command, user and options."""
    job, config_map = _run(root, profile, namespace="lab")
    name = job["metadata"]["name"]
    assert name.startswith("my-model-")
    assert config_map["metadata"]["name"].startswith(f"{name}-code-")
    assert (config_map["metadata"]["namespace"], config_map["immutable"]) == ("lab", True)
    labels = {
        "app.kubernetes.io/name": "my-model",
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/managed-by": "ebbtide",
        "ebbtide.dev/owner": "ada-acme.example",
    }
    for item in (job, config_map, job["spec"]["template"]):
        assert labels.items() <= item["metadata"]["labels"].items()
    annotations = job["metadata"]["annotations"]
    assert annotations["ebbtide.dev/user"] == "ada@acme.example"
    assert annotations["ebbtide.dev/command"] == "python train.py"
    assert json.loads(annotations["ebbtide.dev/parameters"]) == {"gpus": 1}
    archive = io.BytesIO(base64.b64decode(config_map["binaryData"]["code.tar.gz"]))
    with tarfile.open(fileobj=archive) as unpacked:
        assert unpacked.getnames() == ["lib/data.txt", "train.py"]


def test_objects_with_a_registry(root: Path) -> None:
    """The code is in no ConfigMap, and no shell unpacks it; a setup still runs in a shell."""
    profile = replace(DEV, teams=(TeamProfile("vision", "images", registry="acme.example/ml"),))
    (job,) = _run(root, profile, namespace="images")
    assert container_of(job)["command"] == ["python", "train.py"]
    assert container_of(job)["workingDir"] == "/code"
    assert "code" not in str(job["spec"]["template"]["spec"].get("volumes"))
    (job,) = _run(root, profile, namespace="images", setup="pip list")
    assert container_of(job)["command"][2] == 'pip list\nexec "$@"'
    assert len(_run(root, profile, namespace="images", code_in=CodeIn.CONFIG_MAP)) == 2
    assert len(_run(root, profile, namespace="lab")) == 2
    storage = storage_of(profile, "images", read_folder(root), None)
    assert storage == Storage(CodeIn.IMAGE, "acme.example/ml/my-model")
    with pytest.raises(
        WorkloadError, match="Namespace lab has no registry for an image of the code: declare"
    ):
        _run(root, profile, namespace="lab", code_in=CodeIn.IMAGE)


def test_a_setup_with_a_token(root: Path) -> None:
    """A setup with a token is refused, and no setup is in an annotation, which is listed with the Job."""
    with pytest.raises(WorkloadError, match=r"setup \(--setup\) has a token of Hugging Face, which everyone"):
        _run(root, DEV, setup=f"huggingface-cli login --token hf_{'a' * 34}")
    assert "setup" in UNRECORDED


@pytest.mark.parametrize("profile", [DEV, DEV_AKS], ids=["gke", "aks"])
def test_the_share_of_a_node(root: Path, profile: Profile) -> None:
    """CPU and memory default to the part of the node that belongs to the GPUs; given values stay."""
    pool = profile.pool(_pool(profile, "t4-spot"))
    assert pool.accelerator is not None
    requests = container_of(_run(root, profile)[0])["resources"]["requests"]
    assert requests["cpu"] == f"{pool.cpu_m // pool.accelerator.count}m"
    assert requests["memory"] == f"{pool.memory_mib // pool.accelerator.count}Mi"
    whole = container_of(_run(root, profile, gpus=pool.accelerator.count, cpu="2")[0])["resources"][
        "requests"
    ]
    assert (whole["cpu"], whole["memory"]) == ("2", f"{pool.memory_mib}Mi")
    one = container_of(_run(root, profile, gpus=None, pool=_pool(profile, "cpu-spot"))[0])["resources"][
        "requests"
    ]
    assert one["cpu"] == "1"


def test_the_share_of_a_node_in_a_queue(root: Path) -> None:
    """A queue needs no amounts from the user."""
    job, *_ = _run(root, pool="", queue="a100", namespace="")
    assert job["spec"]["suspend"]
    assert {"cpu", "memory", "nvidia.com/gpu"} == container_of(job)["resources"]["requests"].keys()


@pytest.mark.parametrize("without_tar", [False, True])
def test_the_shell_runs_setup_and_command(root: Path, tmp_path: Path, *, without_tar: bool) -> None:
    """The command gets its arguments unchanged, in the folder, after the setup, without tar by Python."""
    setup = 'value=$(echo ready)\necho $value $$ >/dev/null; echo "$value" > marker'
    command = ["python3", "train.py", "a b", "$HOME", '"']
    job, config_map = _run(root, command=command, setup=setup)
    (tmp_path / "archive").mkdir()
    (tmp_path / "code").mkdir()
    (tmp_path / "archive/code.tar.gz").write_bytes(base64.b64decode(config_map["binaryData"]["code.tar.gz"]))
    container = container_of(job)
    paths = {item["mountPath"] for item in container["volumeMounts"]}
    assert paths == {"/ebbtide", "/code"}
    # As the kubelet does: $$ is $.
    words = [word.replace("$$", "$") for word in (*container["command"], *container["args"])]
    words[2] = (
        words[2].replace("/ebbtide/", f"{tmp_path}/archive/").replace("-C /code", f"-C {tmp_path}/code")
    )
    words[2] = words[2].replace(" /code;", f" {tmp_path}/code;")
    if without_tar:
        words[2] = words[2].replace("command -v tar", "command -v no-tar")
    done = subprocess.run(words, cwd=tmp_path / "code", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "data ['a b', '$HOME', '\"']\n"), done.stderr
    assert (tmp_path / "code/marker").read_text() == "ready\n"


@pytest.mark.parametrize("base", [GKE, AKS])
def test_an_archive_in_the_bucket(root: Path, base: Declaration) -> None:
    """The folder of its digest is mounted, read-only by the team's identity, and the shell unpacks it; other
    code has another folder."""
    team: Any = {"name": "vision", "requireQueue": False, "volume": {}}
    profile = derived(changed(base, teams=[team]))
    more: Any = {"namespace": "vision", "pool": "cpu", "gpus": 0, "code_in": CodeIn.BUCKET}
    (job,) = _run(root, profile, **more)
    assert_valid(job, "1.35")
    container, pod = container_of(job), job["spec"]["template"]["spec"]
    archive, directory = container["volumeMounts"]
    address = storage_of(profile, "vision", read_folder(root), CodeIn.BUCKET).address
    assert address == f"{profile.teams[0].bucket}/{archive['subPath']}"
    assert re.fullmatch("code/[0-9a-f]{64}", archive["subPath"])
    assert (archive["mountPath"], archive["readOnly"], directory["mountPath"]) == ("/ebbtide", True, "/code")
    assert pod["serviceAccountName"] == "worker"
    assert container["command"][2].startswith("if command -v tar >/dev/null; then tar -xzf /ebbtide/code.tar")
    (root / "train.py").write_text("other code")
    assert storage_of(profile, "vision", read_folder(root), CodeIn.BUCKET).address != address
    with pytest.raises(WorkloadError, match="Namespace lab has no bucket for an archive of the code:"):
        _run(root, profile, **{**more, "namespace": "lab"})


def test_code_that_is_too_large_for_a_config_map(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code of more than a ConfigMap holds is in the bucket by default, if pods can mount that."""
    monkeypatch.setattr(code, "_LARGEST", 100)
    teams: list[Any] = [{"volume": {}}, {"bucket": {}}]
    for base, team, expected in (
        (GKE, teams[0], CodeIn.BUCKET),
        (GKE, teams[1], CodeIn.BUCKET),
        (AKS, teams[0], CodeIn.BUCKET),
        (AKS, teams[1], CodeIn.CONFIG_MAP),
    ):
        profile = derived(changed(base, teams=[{"name": "vision", "requireQueue": False, **team}]))
        folder = read_folder(root)
        assert storage_of(profile, "vision", folder, None).kind is expected
        assert storage_of(profile, "lab", folder, None).kind is CodeIn.CONFIG_MAP
        if expected is CodeIn.BUCKET:
            (job,) = _run(root, profile, namespace="vision", pool="cpu", gpus=0)
            assert container_of(job)["volumeMounts"][0]["subPath"].startswith("code/")


def test_the_upload_to_the_bucket(root: Path, bucket: Bucket, tmp_path: Path) -> None:
    """The archive is written once, and has the folder's files; a bucket that does not exist is reported."""
    folder, team = read_folder(root), TeamProfile("vision", "vision", bucket=f"gs://{bucket.name}")
    profile = replace(DEV, teams=(team,))
    storage = storage_of(profile, "vision", folder, CodeIn.BUCKET)
    address = storage.address
    notes = [uploaded({}, profile, storage, folder, {})[1] for _ in range(2)]
    assert notes == [f"Archive: {address}", f"Archive: {address}, which has it already"]
    bucket.files.get_file(f"{address.removeprefix('gs://')}/code.tar.gz", str(tmp_path / "code.tar.gz"))
    with tarfile.open(tmp_path / "code.tar.gz") as archive:
        assert sorted(archive.getnames()) == ["lib/data.txt", "train.py"]
    other = Storage(CodeIn.BUCKET, "gs://no-such-bucket/code")
    with pytest.raises(WorkloadError, match=r"The code was not uploaded\. gs://no-such-bucket/code"):
        uploaded({}, profile, other, folder, {})


def test_an_object_that_exists_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work may be reading it."""
    files = Mock(exists=Mock(side_effect=[True, False]))
    monkeypatch.setattr("ebbtide.in_pods.storage._opened", Mock(return_value=(files, "code")))
    assert not write_once("gs://vision/code", b"other")
    assert files.pipe_file.mock_calls == []
    assert write_once("gs://vision/code", b"code")
    files.pipe_file.assert_called_once_with("code", b"code")


def test_an_upload_without_a_login(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is one line, with the first of a library's report on every credential that it has tried."""
    report = RuntimeError("DefaultAzureCredential failed.\nAttempted credentials:\n\tAzureCliCredential")
    opened = Mock(return_value=(Mock(exists=Mock(side_effect=report)), "code"))
    monkeypatch.setattr("ebbtide.in_pods.storage._opened", opened)
    with pytest.raises(WorkloadError) as error:
        uploaded({}, DEV, Storage(CodeIn.BUCKET, "gs://vision/code"), read_folder(root), {})
    assert str(error.value).endswith(
        "could not be used: DefaultAzureCredential failed. Check that you are logged in to the cloud, and "
        "may write there."
    )


def test_setup_that_fails(root: Path) -> None:
    """The command does not run after a setup that failed."""
    job, _ = _run(root, setup="false")
    words = container_of(job)["command"]
    words[2] = words[2].partition("fi\n")[2]
    assert subprocess.run([*words, "echo", "ran"], capture_output=True, check=False).stdout == b""


def test_several_nodes(root: Path) -> None:
    """A run over several nodes has a Service too, and the rank's variables."""

    def build(profile: Profile, **task: Any) -> tuple[Object, Object]:
        return job_over_nodes(profile, 2, **task)

    job, config_map, service = _run(root, name="train", build=build)
    assert [item["kind"] for item in (job, config_map, service)] == ["Job", "ConfigMap", "Service"]
    assert any(item["name"] == "RANK" for item in container_of(job)["env"])


def test_a_sweep(root: Path) -> None:
    """An index for each point has the code, and the share of a node as an ordinary run."""

    def build(profile: Profile, **task: Any) -> tuple[Object]:
        return (sweep(profile, {"lr": [0.1, 0.2]}, **task),)

    job, config_map = _run(root, name="grid", build=build)
    assert job["spec"]["completions"] == 2
    assert container_of(job)["args"] == ["python", "train.py"]
    assert container_of(job)["resources"] == container_of(_run(root)[0])["resources"]
    assert config_map["metadata"]["name"].startswith("grid-code-")


def test_names() -> None:
    """Names of folders become labels that begin with a letter; two runs have different names."""
    for folder in ("My Model", "2026-11", "...", "ä" * 100, "x" * 100):
        assert is_label(name_of(folder)), folder
        assert application(folder)[0].isalpha()
    assert name_of("train") != name_of("train")
    assert label_value("system:serviceaccount:lab:ci") == "system-serviceaccount-lab-ci"


def test_commands_that_are_refused(root: Path) -> None:
    """Every problem is reported at once: a script that is missing or ignored, no command, an unknown pool."""
    with pytest.raises(WorkloadError) as caught:
        _run(root, command=["python", "tarin.py"], pool="t5")
    assert [line.partition(";")[0] for line in caught.value.problems] == [
        f"tarin.py is not in the code of {root}",
        "Cluster train-dev has no pool t5",
    ]
    assert "did you mean train.py? Write the path" in caught.value.problems[0]
    with pytest.raises(
        WorkloadError, match=r"There is no command: write it last, as in `-- python train\.py`"
    ):
        _run(root, command=[])
    (root / ".gitignore").write_text("train.py")
    with pytest.raises(
        WorkloadError, match=r"excludes it, and the Job would not have it: change the pattern"
    ):
        _run(root)


def test_code_that_is_too_large(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the largest files."""
    monkeypatch.setattr(code, "_LARGEST", 100)
    with pytest.raises(WorkloadError, match=r"and a ConfigMap can hold 1 kB\. The largest files: train\.py"):
        _run(root)


def _account(**annotations: str) -> Any:
    account: Object = {"metadata": {"annotations": annotations}}
    return Mock(find=Mock(return_value=account))


_OF_GOOGLE = _account(
    **{"iam.gke.io/gcp-service-account": "train-team-vision@acme-ml.iam.gserviceaccount.com"}
)
_OF_AZURE = _account(**{"azure.workload.identity/client-id": "00000000-0000-0000-0000-000000000001"})


@pytest.mark.parametrize(
    ("api", "cloud", "registry", "bucket"),
    [
        (_OF_GOOGLE, CloudKind.GKE, "evil.example.com/x", ""),
        (_OF_GOOGLE, CloudKind.GKE, "us-central1-docker.pkg.dev/evil/x", ""),
        (_OF_GOOGLE, CloudKind.GKE, "us-central1-docker.pkg.dev.evil.example.com/acme-ml/x", ""),
        (_OF_GOOGLE, CloudKind.AKS, "evil.azurecr.io", ""),
        (_OF_GOOGLE, CloudKind.GKE, "", "abfss://shared@evil.dfs.core.windows.net"),
        (_OF_AZURE, CloudKind.AKS, "evil.example.com", ""),
        (_OF_AZURE, CloudKind.GKE, "us-central1-docker.pkg.dev/evil/x", ""),
        (_OF_AZURE, CloudKind.AKS, "", "s3://evil"),
    ],
)
def test_code_is_not_written_to_others(api: Any, cloud: CloudKind, registry: str, bucket: str) -> None:
    """A changed profile diverts no code: the service account, which no member changes, names the
    team's cloud and project."""
    team = TeamProfile("vision", "vision", registry=registry, bucket=bucket)
    profile = replace(DEV, cloud=cloud, teams=(team,))
    with pytest.raises(WorkloadError, match="nothing was written or created") as refused:
        code.check_destination(api, profile, "vision")
    assert (registry or bucket) in str(refused.value)


@pytest.mark.parametrize(
    ("api", "declaration"), [(_OF_GOOGLE, GKE), (_OF_AZURE, AKS), (Mock(find=Mock(return_value=None)), GKE)]
)
def test_code_is_written_to_the_team(api: Any, declaration: Declaration) -> None:
    """The addresses of every declared team, and a registry on the user's machine, are accepted."""
    teams: list[Object] = [{"name": "vision", "registry": {}, "bucket": {}}]
    profile = derived(changed(declaration, teams=teams))
    code.check_destination(api, profile, "vision")
    local = TeamProfile("vision", "vision", registry="localhost:5000/acme-ml/vision")
    code.check_destination(api, replace(profile, teams=(local,)), "vision")


def test_a_project_of_a_domain_is_recognized() -> None:
    """`acme.example:ml` is a path of two parts in a registry, and reversed in the e-mail of an account."""
    api = _account(**{"iam.gke.io/gcp-service-account": "a@ml.acme.example.iam.gserviceaccount.com"})
    team = TeamProfile("vision", "vision", registry="us-central1-docker.pkg.dev/acme.example/ml/train-vision")
    code.check_destination(api, replace(DEV, teams=(team,)), "vision")
