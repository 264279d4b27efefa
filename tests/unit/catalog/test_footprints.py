"""The catalog's footprints of add-ons, compared with upstream's patched objects."""

from collections.abc import Sequence

import pytest

from components.addons import katib_objects, pipelines_objects
from components.addons.objects import Patch, has_pods
from ebbtide.declaration.catalog import footprint
from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.model import Pipelines
from tests.manifests import (
    HOME,
    KATIB,
    PIPELINES,
    PIPELINES_CLUSTER,
    after,
    mebibytes,
    requests,
    upstream,
)

ADDONS: dict[str, tuple[tuple[str, ...], Sequence[Patch]]] = {
    "pipelines": (
        (PIPELINES_CLUSTER, PIPELINES),
        pipelines_objects.patches(Pipelines(), HOME, {}),
    ),
    "katib": ((KATIB,), katib_objects.patches(HOME, {})),
}


@pytest.mark.released(PIPELINES_CLUSTER, PIPELINES, KATIB)
@pytest.mark.parametrize("addon", ADDONS)
def test_a_footprint_is_what_the_objects_say(addon: str) -> None:
    """Requests, pods, disks, load balancers and webhooks are those of the rendered kustomization."""
    files, patches = ADDONS[addon]
    made = [(key, item) for name in files for key, item in after(upstream(name), patches).items()]
    all_requests = [requests(item) for _, item in made]
    entry = footprint(addon)
    assert entry.requests.cpu_m == sum(cpu for cpu, _ in all_requests)
    assert entry.requests.memory_mib == sum(memory for _, memory in all_requests)
    pod_requests = [requests(item) for _, item in made if has_pods(item)]
    assert (entry.most.cpu_m, entry.most.memory_mib) == tuple(map(max, zip(*pod_requests, strict=True)))
    assert entry.pods == sum(item["spec"].get("replicas", 1) for _, item in made if has_pods(item))
    assert sorted(entry.volumes_gib) == sorted(
        mebibytes(item["spec"]["resources"]["requests"]["storage"]) / 1024
        for key, item in made
        if key.startswith("PersistentVolumeClaim/")
    )
    assert entry.load_balancers == len(
        [
            item
            for key, item in made
            if key.startswith("Service/") and item["spec"].get("type") == "LoadBalancer"
        ]
    )
    assert entry.webhooks == len([key for key, _ in made if "WebhookConfiguration/" in key])
    assert entry.verified


@pytest.mark.parametrize("row", rows("footprints"), ids=lambda row: row["item"])
def test_every_footprint_is_sourced(row: dict[str, str]) -> None:
    """Each says when and where it was read, and what it is can be read back."""
    assert row["as_of"]
    assert row["source"]
    assert footprint(row["item"]).requests.cpu_m > 0
    assert footprint(row["item"]).requests.holds(footprint(row["item"]).most)
    assert (footprint(row["item"]).most.cpu_m > 0) != row["item"].endswith(("-node", "-daemonset"))


@pytest.mark.parametrize("addon", ["kueue", "pipelines", "trainer", "katib"])
def test_what_a_preview_cannot_see_is_counted(addon: str) -> None:
    """Every chart and kustomization has its pods counted, since a preview shows one resource for it."""
    assert footprint(addon).pods
