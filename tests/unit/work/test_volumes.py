"""Volumes that outlive a pod: where the outputs of Jobs and sweeps are, and what is refused."""

from dataclasses import replace
from typing import Any

import pytest

from ebbtide.placement import Profile
from ebbtide.work.errors import WorkloadError
from ebbtide.work.experiments import Double, experiment
from ebbtide.work.jobs import job
from ebbtide.work.sweeps import sweep
from tests.declarations import AKS, GKE, changed
from tests.manifests import assert_valid
from tests.unit.work.clusters import derived, pod_of, problems_of

_CLAIM = [{"name": "outputs", "persistentVolumeClaim": {"claimName": "shared"}}]


def _profile(cloud: str, **team: Any) -> Profile:
    base = {"gke": GKE, "aks": AKS}[cloud]
    return derived(changed(base, teams=[{"name": "vision", "requireQueue": False, **team}]))


def _fields(**more: Any) -> Any:
    return {"name": "train", "image": "python", "pool": "cpu", "namespace": "vision"} | more


def _mounts(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    return pod_of(manifest)["containers"][0]["volumeMounts"]


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_the_volume_of_the_team(cloud: str) -> None:
    """The Job's folder of its claim is mounted, with the path in a variable, by the team's identity."""
    made = job(_profile(cloud, volume={}), **_fields(outputs="/outputs", run_as_user=1000))
    assert_valid(made, "1.35")
    pod, metadata = pod_of(made), made["spec"]["template"].get("metadata", {})
    assert pod["volumes"] == _CLAIM
    assert _mounts(made) == [{"name": "outputs", "mountPath": "/outputs", "subPath": "outputs/train"}]
    assert pod["containers"][0]["env"] == [{"name": "EBBTIDE_OUTPUTS", "value": "/outputs"}]
    assert pod["serviceAccountName"] == "worker"
    assert (metadata.get("annotations") == {"gke-gcsfuse/volumes": "true"}) is (cloud == "gke")
    assert (metadata.get("labels") == {"azure.workload.identity/use": "true"}) is (cloud == "aks")


def test_the_volume_of_the_job() -> None:
    """A claim of its own is mounted twice, and no volume of a team is needed."""
    made = job(_profile("aks"), **_fields(outputs="/outputs", volume="own", service_account="mine"))
    assert pod_of(made)["volumes"] == [
        {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "own"}},
    ]
    assert _mounts(made) == [
        {"name": "checkpoints", "mountPath": "/checkpoints"},
        {"name": "checkpoints", "mountPath": "/outputs", "subPath": "outputs/train"},
    ]
    assert pod_of(made)["serviceAccountName"] == "mine"


def test_a_bucket_without_a_volume() -> None:
    """Cloud Storage is mounted by the pod itself."""
    profile = _profile("gke", bucket={})
    made = job(profile, **_fields(outputs="/outputs"))
    assert_valid(made, "1.35")
    (volume,) = pod_of(made)["volumes"]
    bucket = profile.teams[0].bucket.removeprefix("gs://")
    assert volume["csi"] == {
        "driver": "gcsfuse.csi.storage.gke.io",
        "volumeAttributes": {"bucketName": bucket, "mountOptions": "implicit-dirs"},
    }
    assert _mounts(made)[0]["subPath"] == "outputs/train"


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_a_sweep_has_a_folder_for_each_index(cloud: str) -> None:
    """A sweep's folders are named by index, a variable that the Job's controller sets."""
    profile = _profile(cloud, volume={})
    mounts = {f"{profile.teams[0].bucket}/images": "/data"}
    made = sweep(profile, {"lr": [0.1, 0.01]}, **_fields(outputs="/outputs", mounts=mounts))
    assert_valid(made, "1.35")
    expected = "outputs/train/$(JOB_COMPLETION_INDEX)"
    outputs, data = _mounts(made)
    assert outputs == {"name": "outputs", "mountPath": "/outputs", "subPathExpr": expected}
    assert (data["subPath"], data["readOnly"]) == ("images", True)


@pytest.mark.parametrize(
    ("cloud", "team", "fields", "message"),
    [
        (
            "aks",
            {"bucket": {}},
            {"outputs": "/outputs"},
            (
                "Namespace vision has no volume in the profile of cluster train, and what is written to "
                "/outputs (outputs) would be lost with the pod: name a claim with volume (--volume), or "
                "declare `volume: {}` for team vision."
            ),
        ),
        ("gke", {"volume": {}}, {"outputs": "outputs"}, "outputs is 'outputs'; it is an absolute path in"),
        ("gke", {"volume": {}}, {"outputs": "/"}, "outputs is '/'; it is an absolute path in"),
        (
            "gke",
            {"volume": {}},
            {"outputs": "/checkpoints", "volume": "shared"},
            "mount_path and outputs both have /checkpoints: only one volume can be mounted there.",
        ),
        (
            "gke",
            {"volume": {}},
            {"outputs": "/outputs", "env": {"EBBTIDE_OUTPUTS": "/x"}},
            "env has EBBTIDE_OUTPUTS, which --outputs sets: use another name.",
        ),
    ],
)
def test_outputs_that_are_refused(
    cloud: str, team: dict[str, Any], fields: dict[str, Any], message: str
) -> None:
    """Without storage, at an impossible path, or at that of another volume."""
    (problem,) = problems_of(lambda: job(_profile(cloud, **team), **_fields(**fields)))
    assert problem.startswith(message)


def test_an_experiment_has_no_outputs() -> None:
    """Katib names the trials, and a folder cannot have their names."""
    with pytest.raises(WorkloadError, match="outputs is given, and the trials of an"):
        experiment(
            _profile("gke", volume={}),
            {"lr": Double(0.1, 1)},
            objective_metric_name="loss",
            objective_type="minimize",
            max_trial_count=2,
            parallel_trial_count=1,
            **_fields(outputs="/outputs", command=["train", "${trialParameters.lr}"]),
        )


def test_a_bucket_of_google_cloud() -> None:
    """Each is mounted by the pod itself, read-only, with the team's identity."""
    mounts = {"gs://acme-data/images/train": "/data", "gs://acme-models": "/models"}
    made = job(_profile("gke"), **_fields(mounts=mounts, run_as_user=1000))
    assert_valid(made, "1.35")
    pod = pod_of(made)
    assert [volume["csi"]["volumeAttributes"]["bucketName"] for volume in pod["volumes"]] == [
        "acme-data",
        "acme-models",
    ]
    assert {volume["csi"]["readOnly"] for volume in pod["volumes"]} == {True}
    assert _mounts(made) == [
        {"name": "mount-0", "mountPath": "/data", "subPath": "images/train", "readOnly": True},
        {"name": "mount-1", "mountPath": "/models", "readOnly": True},
    ]
    assert pod["serviceAccountName"] == "worker"
    assert made["spec"]["template"]["metadata"]["annotations"] == {"gke-gcsfuse/volumes": "true"}


def test_the_bucket_of_the_team_on_azure() -> None:
    """The claim of the team's bucket is mounted, once for the pod."""
    profile = _profile("aks", volume={})
    address = profile.teams[0].bucket.replace("abfss", "abfs")
    made = job(profile, **_fields(outputs="/outputs", mounts={f"{address}/data/": "/data"}))
    assert_valid(made, "1.35")
    assert pod_of(made)["volumes"] == _CLAIM
    assert _mounts(made)[1] == {
        "name": "outputs",
        "mountPath": "/data",
        "subPath": "data",
        "readOnly": True,
    }


@pytest.mark.parametrize(
    ("cloud", "team", "mounts", "message"),
    [
        (
            "gke",
            {},
            {"abfs://c@acct.dfs.core.windows.net/x": "/data"},
            "mount folders as gs://BUCKET/FOLDER: ",
        ),
        ("gke", {}, {"gs://acme-data/../x": "/data"}, "mount folders as gs://BUCKET/FOLDER: "),
        ("gke", {}, {"gs://acme-data": "data"}, "mounts is 'data'; it is an absolute path"),
        ("gke", {}, {"gs://one": "/data", "gs://two": "/data"}, "mounts has /data twice: "),
        ("aks", {}, {"gs://acme-data": "/data"}, "mount folders as abfs://CONTAINER@ACCOUNT."),
        (
            "aks",
            {},
            {"abfs://other@acct.dfs.core.windows.net": "/data"},
            "their team, which has none (declare",
        ),
        (
            "aks",
            {"volume": {}},
            {"abfs://other@acct.dfs.core.windows.net": "/data"},
            "can only mount the bucket that is the volume of their team, abfss://shared@",
        ),
        (
            "aks",
            {"bucket": {}, "volume": {"kind": "azure-files"}},
            {"abfs://other@acct.dfs.core.windows.net": "/data"},
            "their team, which has none (declare",
        ),
    ],
)
def test_mounts_that_are_refused(
    cloud: str, team: dict[str, Any], mounts: dict[str, str], message: str
) -> None:
    """Addresses of another cloud, paths that cannot be mounted, and other teams' buckets on Azure."""
    (problem,) = problems_of(lambda: job(_profile(cloud, **team), **_fields(mounts=mounts)))
    assert message in problem


def test_mounts_without_an_identity_or_a_driver() -> None:
    """Both are reported, with what to write."""
    profile = replace(_profile("gke"), bucket_driver="", teams=())
    driver, identity = problems_of(lambda: job(profile, **_fields(mounts={"gs://acme-data": "/data"})))
    assert "may not have the driver that mounts buckets: declare `volume: {}` for a team" in driver
    assert "name one with service_account (--service-account)" in identity
    existing = GKE["cloud"] | {"existing": {"name": "theirs"}}
    pools = [pool for pool in GKE["pools"] if pool["name"] != "system"]
    more: list[dict[str, Any]] = [{}, {"volume": {}}]
    for fields, driver in zip(more, ("", "gcsfuse.csi.storage.gke.io"), strict=True):
        team: Any = {"name": "vision", **fields}
        assert derived(changed(GKE, cloud=existing, pools=pools, teams=[team])).bucket_driver == driver
