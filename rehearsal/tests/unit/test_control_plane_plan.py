"""A control plane as it is planned: arguments, identities, certificates, what a cloud adds."""

import csv
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml

from ebbtide_rehearsal.control_plane import plan as arguments_of
from ebbtide_rehearsal.control_plane.installed import storage_classes
from ebbtide_rehearsal.control_plane.plan import (
    LOCALHOST,
    MASTERS,
    CloudName,
    ControlPlanePlan,
    Identities,
    PortReservation,
    issue,
    kubeconfig,
)
from ebbtide_rehearsal.control_plane.stages import EXIT_CODE, RUNS, RUNS_FOR, stages


@pytest.fixture
def plan(tmp_path: Path) -> ControlPlanePlan:
    """A plan of which nothing has started."""
    return ControlPlanePlan(
        name="planned",
        cloud="gke",
        directory=tmp_path,
        sockets=tmp_path / "s",
        etcd_port=1111,
        api_port=2222,
        certificates=issue(tmp_path / "certificates", ["cluster.example"]),
        identities=Identities.new("ci@acme.example", {"ada@acme.example": ["vision", "speech"]}),
    )


@pytest.mark.parametrize("name", ["etcd", "api_server", "controller_manager", "scheduler", "kwok"])
def test_arguments_are_flags_once_each(plan: ControlPlanePlan, name: str) -> None:
    """No flag is given twice, and no file is named that is not below the control plane's directory."""
    given: list[str] = getattr(arguments_of, name)(plan)
    flags = [item.partition("=")[0] for item in given]
    assert all(flag.startswith("--") for flag in flags)
    assert len(set(flags)) == len(flags)
    files = [item.partition("=")[2] for item in given if item.partition("=")[2].startswith("/")]
    assert all(Path(file).is_relative_to(plan.directory) for file in files)


def test_nothing_listens_beyond_this_machine(plan: ControlPlanePlan) -> None:
    """Every address to listen on is the loopback's, or kwok's socket; the controllers listen nowhere."""
    etcd, api = arguments_of.etcd(plan), arguments_of.api_server(plan)
    listening = [item for item in (*etcd, *api) if item.startswith(("--listen", "--bind-address"))]
    assert len(listening) == 3
    assert all(LOCALHOST in item for item in listening)
    assert f"--server-address={plan.sockets}/kubelet" in arguments_of.kwok(plan)
    for program in (arguments_of.controller_manager, arguments_of.scheduler):
        assert "--secure-port=0" in program(plan)


def test_the_api_server_reaches_the_cluster_through_the_proxy(plan: ControlPlanePlan) -> None:
    """The selection that webhooks and aggregated APIs are reached by, and no other."""
    (selection,) = yaml.safe_load(yaml.safe_dump(arguments_of.egress(plan)))["egressSelections"]
    assert selection["name"] == "cluster"
    assert selection["connection"]["transport"] == {"uds": {"udsName": str(plan.egress_socket)}}


def test_everyone_has_a_token_of_their_own(plan: ControlPlanePlan) -> None:
    """The administrator and the person may do everything; a member is in their groups alone."""
    lines = list(csv.reader(plan.identities.token_file().splitlines()))
    tokens = [line[0] for line in lines]
    assert len(set(tokens)) == len(lines) == 3
    groups = {line[1]: line[3] for line in lines}
    assert groups["ci@acme.example"] == MASTERS
    assert groups["ada@acme.example"] == "vision,speech"


def test_a_kubeconfig_names_an_authority_only_where_there_is_one() -> None:
    """An empty one would be refused by clients."""
    bare = kubeconfig(server="https://x", authority="", user={"token": "t"})
    full = kubeconfig(server="https://x", authority="YQ==", user={"token": "t"}, namespace="n")
    assert bare["clusters"][0]["cluster"] == {"server": "https://x"}
    assert full["clusters"][0]["cluster"]["certificate-authority-data"] == "YQ=="
    assert full["contexts"][0]["context"]["namespace"] == "n"


@pytest.mark.parametrize("name", ["localhost", LOCALHOST, "cluster.example"])
def test_the_bundle_vouches_for_the_api_server(plan: ControlPlanePlan, name: str) -> None:
    """A client that trusts the bundle, and nothing else, accepts the certificate under each of its names."""
    issued = plan.certificates
    trusting = ssl.create_default_context(cafile=str(issued.bundle))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(issued.api_server.certificate, issued.api_server.key)
    _handshake(trusting, serving, name)
    with pytest.raises(ssl.SSLCertVerificationError):
        _handshake(ssl.create_default_context(), serving, name)


def _handshake(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> None:
    ways = [ssl.MemoryBIO() for _ in range(2)]
    asking = client.wrap_bio(ways[0], ways[1], server_hostname=name)
    answering = server.wrap_bio(ways[1], ways[0], server_side=True)
    for _ in range(2):
        for side in (asking, answering):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert asking.version() == "TLSv1.3"


def test_ports_are_held_until_they_are_used() -> None:
    """No other plan gets them while they are held; afterwards any may."""
    with PortReservation(3) as first, PortReservation(3) as second:
        assert len({*first.ports, *second.ports}) == 6
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((LOCALHOST, first.ports[0]))
    with socket.socket() as other:
        other.bind((LOCALHOST, first.ports[0]))


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_a_cluster_has_one_default_class(cloud: CloudName) -> None:
    """The default storage class waits for the first consumer and deletes disks with their claims, as in both
    clouds."""
    classes = storage_classes(cloud)
    default = [item for item in classes if item["metadata"]["annotations"]]
    assert [item["volumeBindingMode"] for item in default] == ["WaitForFirstConsumer"]
    assert {item["reclaimPolicy"] for item in classes} == {"Delete"}


def _kwok_stages(directory: Path) -> Path:
    """Stages of kwok's own, as far as they matter here."""
    for place, name in (
        ("node/fast", "node-initialize"),
        ("node/heartbeat-with-lease", "node-heartbeat-with-lease"),
        ("pod/fast", "pod-ready"),
        ("pod/fast", "pod-delete"),
    ):
        kind = "Pod" if name.startswith("pod") else "Node"
        spec: dict[str, Any] = {"resourceRef": {"kind": kind}, "selector": {"matchExpressions": []}}
        file = directory / place / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump({"metadata": {"name": name}, "spec": spec}))
    return directory


def test_kwok_leaves_pods_alone_that_are_really_run(tmp_path: Path) -> None:
    """Each stage of a pod excludes them; none of a node does."""
    others = [{"name": "kueue", "part": "manager"}, {"component": "controller"}]
    theirs = (
        '.metadata.labels | select(.["name"] == "kueue" and .["part"] == "manager" or '
        '.["component"] == "controller") | keys'
    )
    for stage in stages(_kwok_stages(tmp_path), others):
        keys = [item["key"] for item in _expressions(stage)]
        excluded = any(RUNS in key for key in keys) and theirs in keys
        assert excluded == (stage["spec"]["resourceRef"]["kind"] == "Pod"), stage["metadata"]["name"]


def test_kwok_has_the_pods_of_missing_programs(tmp_path: Path) -> None:
    """Pods of missing programs become ready in kwok."""
    for stage in stages(_kwok_stages(tmp_path), []):
        assert not [item["key"] for item in _expressions(stage) if ".metadata.labels" in item["key"]]


def test_work_ends_as_it_is_told(tmp_path: Path) -> None:
    """Each ending waits for the seconds of the annotation and tells pods apart by the exit code's."""
    endings = [
        item for item in stages(_kwok_stages(tmp_path), []) if item["metadata"]["name"].startswith("work-")
    ]
    assert len(endings) == 3
    for stage in endings:
        assert RUNS_FOR in stage["spec"]["delay"]["durationFrom"]["expressionFrom"]
        assert any(EXIT_CODE in item["key"] for item in _expressions(stage))


def _expressions(stage: dict[str, Any]) -> list[dict[str, Any]]:
    return stage["spec"]["selector"]["matchExpressions"]
