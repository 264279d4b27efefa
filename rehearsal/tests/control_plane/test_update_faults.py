"""Faults between the API server and `ebbtide up` and `ebbtide extend`: engine, language host
and control plane are real.
"""

from collections.abc import Generator
from pathlib import Path

import pytest

from ebbtide_rehearsal.cloud.provider import Endpoint
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from rehearsal.tests.control_plane.fault_proxy import ONCE, Fault, FaultProxy, kill_group
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.engine.sites import Checkout, checkout_on

pytestmark = [pytest.mark.rehearsal, pytest.mark.long, pytest.mark.timeout(7200)]


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
