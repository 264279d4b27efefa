"""The metrics of a deployed stack, read from its state."""

import json
from pathlib import Path

import pytest

from ebbtide.analysis.charges import deployed
from ebbtide.analysis.metrics import metric_sources
from ebbtide.values.cloud_kind import CloudKind
from rehearsal.tests.engine.sites import site_on
from tests.declarations import GKE

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("cloud", ["gke", pytest.param("aks", marks=pytest.mark.long)])
def test_the_state_has_the_store_of_the_metrics(
    cloud: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The project, or the workspace's id, is known after an update."""
    for site in site_on(cloud, tmp_path, request):
        declared = site.declared()
        declared["addons"] = {"metrics": {}}
        site.declare(declared)
        status, out = site.up()
        assert status == 0, out
        sources = metric_sources(deployed(json.loads(site.terminal.run("pulumi stack export --stack dev"))))
        assert sources is not None
        assert (sources.cluster, sources.gpus, sources.queues) == ("train", False, False)
        if sources.cloud is CloudKind.AKS:
            assert "/providers/Microsoft.Monitor/accounts/" in sources.store
        else:
            assert sources.store == GKE["cloud"]["project"]
