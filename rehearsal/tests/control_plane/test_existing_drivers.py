"""GPU pools on a cluster whose owner has installed a device plugin: a real API server, and the fake AKS."""

from pathlib import Path

import pytest

from rehearsal.tests.control_plane.cluster import device_plugin
from rehearsal.tests.control_plane.live import api_of, live, on_existing

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

_DAEMON_SETS = "/apis/apps/v1/namespaces/kube-system/daemonsets"


def test_a_second_device_plugin_is_refused_before_anything_is_created(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Removed, kept off the pool by its taint, or left alone there, it holds up no update."""
    everywhere = device_plugin("theirs", "kube-system", tolerations=[{"operator": "Exists"}])
    pools = [{"name": "gpu", "machine": "Standard_NC24ads_A100_v4", "nodes": {"max": 1}}]
    made = on_existing("aks", pools=pools, queues=[], teams=[])
    with live(tmp_path, made, request) as site:
        api = api_of(site)
        pools = site.pools()
        api.create(_DAEMON_SETS, everywhere)
        status, out = site.up()
        assert status == 1
        refused = (
            "Nothing was changed: DaemonSet theirs in kube-system would run on the nodes of pool gpu, beside "
            "DaemonSet ebbtide-nvidia-device-plugin in kube-system."
        )
        assert refused in " ".join(out.split()), out
        assert (site.pools(), api.find(f"{_DAEMON_SETS}/ebbtide-nvidia-device-plugin")) == (pools, None)

        api.delete(f"{_DAEMON_SETS}/theirs")
        api.create(_DAEMON_SETS, device_plugin("theirs", "kube-system"))
        status, out = site.up()
        assert (status, "theirs" in out) == (0, False), out

        api.delete(f"{_DAEMON_SETS}/theirs")
        api.create(_DAEMON_SETS, everywhere)
        status, out = site.up()
        assert status == 0, out
        assert "Warning: DaemonSet theirs in kube-system would run" in " ".join(out.split()), out
        status, out = site.run("doctor", confirmed=False)
        assert "PROBLEM drivers: DaemonSet theirs in kube-system would" in " ".join(out.split()), out

        site.declare({**made, "addons": {"drivers": "none"}})
        status, out = site.up()
        assert (status, "theirs" in out) == (0, False), out
        assert api.find(f"{_DAEMON_SETS}/ebbtide-nvidia-device-plugin") is None
