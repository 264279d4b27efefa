"""Faults between the API server and `ebbtide up` and `ebbtide extend`: engine, language host
and control plane are real.
"""

import copy
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final

import pytest

from ebbtide_rehearsal.cloud.provider import Endpoint
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from rehearsal.tests.control_plane.cluster import node
from rehearsal.tests.control_plane.fault_proxy import ONCE, Fault, FaultProxy, kill_group, with_faults
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.engine.sites import Checkout, checkout_on
from tests.declarations import pool

pytestmark = [pytest.mark.rehearsal, pytest.mark.long, pytest.mark.timeout(7200)]

_PODS: Final = "/api/v1/namespaces/default/pods"


@pytest.fixture
def proxy(control_plane: ControlPlane, tmp_path: Path) -> Generator[FaultProxy]:
    """A proxy before a real API server."""
    made = FaultProxy(control_plane, Store(tmp_path / "faults"), control_plane.plan.name)
    yield made
    made.stop()


@pytest.fixture
def site(
    control_plane: ControlPlane, proxy: FaultProxy, tmp_path: Path, request: pytest.FixtureRequest
) -> Generator[Checkout]:
    """A stack with a pool of spot machines, whose cluster is behind the proxy."""
    plan = control_plane.plan
    planes = FakeControlPlanes(Endpoint(proxy.host, plan.certificates.authority_data()))
    store, token = Store(tmp_path / "cloud.sqlite"), plan.identities.admin.token
    with checkout_on("gke", tmp_path, request, store, planes, plan.certificates.authority, token) as site:
        status, out = site.up()
        assert status == 0, out
        yield site


def _changing(site: Checkout, control_plane: ControlPlane) -> Callable[[], object]:
    """Return a function that declares the other capacity of the pool, with a pod on its only node."""
    api = control_plane.api

    def change() -> None:
        (name,) = site.pools() - {"system"}
        for item in api.items("/api/v1/nodes"):
            api.delete(f"/api/v1/nodes/{item['metadata']['name']}")
        node(api, "worker", labels={"cloud.google.com/gke-nodepool": name})
        container = {"name": "main", "image": "busybox"}
        spec = {"nodeName": "worker", "restartPolicy": "Always", "containers": [container]}
        for item in api.items(_PODS):
            api.delete(f"{_PODS}/{item['metadata']['name']}", gracePeriodSeconds=0)
        api.create(_PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})
        declared = copy.deepcopy(site.declared())
        own = pool(declared, "cpu")
        own["capacity"] = "on-demand" if own["capacity"] == "spot" else "spot"
        site.declare(declared)

    return change


@pytest.mark.parametrize("shift", range(len(ONCE)))
def test_a_replacement_with_a_fault(
    site: Checkout, control_plane: ControlPlane, proxy: FaultProxy, shift: int
) -> None:
    """Each request of `ebbtide up` meets a fault while it replaces a pool: the new pool is there, and the old
    one is not."""
    change, before = _changing(site, control_plane), set[str]()

    def begin() -> None:
        before.clear()
        before.update(site.pools())
        change()

    def is_done() -> bool:
        return len(site.pools()) == 2 and site.pools() != before and not control_plane.api.items(_PODS)

    count = with_faults(site.start, proxy, begin, is_done, shift)
    assert count > len(ONCE)
    assert "Stack dev: no change." in site.up()[1]


def test_a_change_of_the_engine_with_a_fault(
    site: Checkout, control_plane: ControlPlane, proxy: FaultProxy
) -> None:
    """Each change of the cluster meets a fault while one team comes and another goes: that `ebbtide up` or
    the next one ends as declared, and refuses nothing that is the stack's own."""
    declared, team = site.declared(), 0

    def update(fault: Fault | None = None, at: int = -1) -> None:
        nonlocal team
        team += 1
        site.declare(declared | {"teams": [{"name": f"team-{team}"}]})
        process = site.start()
        proxy.inject(fault, at, lambda: kill_group(process))
        out, _ = process.communicate(timeout=600)
        if process.returncode:
            assert fault is not None, out
            status, out = site.up()
            assert status == 0, (at, fault, proxy.requests, out)
        names = [item["metadata"]["name"] for item in control_plane.api.items("/api/v1/namespaces")]
        assert [name for name in names if name.startswith("team-")] == [f"team-{team}"]

    proxy.of_engine = True
    update()
    update()
    count = len(proxy.requests)
    assert count > len(ONCE)
    for at in range(count):
        update(ONCE[at % len(ONCE)], at)
