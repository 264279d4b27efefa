"""The placement profile's prices, buckets, claims and images, against the resources of a stack."""

import re

import pytest

from ebbtide.analysis.charges import node_price
from ebbtide.analysis.reading.pools import read_pools
from ebbtide.declaration.catalog.accelerators import default_image
from ebbtide.declaration.catalog.machines import AMD64, ARM64
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.declare import declare
from ebbtide.placement import Profile, ProfileError
from ebbtide.placement.derive import profile
from tests.declarations import BASES, Declaration, changed
from tests.running import manifest
from tests.synth import synth


def _declared(cloud: str) -> Declaration:
    return changed(BASES[cloud], teams=[{"name": "vision", "bucket": {}, "volume": {}}, {"name": "speech"}])


@pytest.mark.parametrize("cloud", BASES)
def test_prices_are_those_of_the_review(cloud: str) -> None:
    """The price of each pool's node is the one that a preview of the same stack computes."""
    made = profile(declare(_declared(cloud)))
    pools = read_pools(synth(_declared(cloud)))
    assert len(pools) == len(made.pools)
    for pool, facts in zip(made.pools, pools, strict=True):
        amount = node_price(facts)
        assert pool.price.per_hour == pytest.approx(amount.known, abs=1e-6)
        assert pool.price.currency == "USD"
        assert pool.price.estimated is bool(amount.estimated)
        assert pool.price.without == amount.unknown


def test_an_unknown_price_stays_unknown() -> None:
    """A machine that the price table lacks has no price, and the missing part is named."""
    declaration = _declared("gke")
    machine = {"type": "c9-standard-4", "vcpus": 4, "memoryGib": 16}
    declaration["pools"] = [
        *[pool for pool in declaration["pools"] if pool.get("role") == "system"],
        {"name": "new", "machine": machine, "nodes": {"max": 1}},
    ]
    price = Profile.load(profile(declare(declaration)).data()).pool("new").price
    assert price.per_hour is None
    assert price.without[0] == "c9-standard-4 (on-demand)"


@pytest.mark.parametrize("cloud", BASES)
def test_the_profile_has_the_bucket_and_the_claim(cloud: str) -> None:
    """A team's bucket and claim in the profile are those that the stack creates."""
    recording = synth(_declared(cloud))
    made = Profile.load(profile(declare(_declared(cloud))).data())
    team, other = (made.team_of(namespace) for namespace in ("vision", "speech"))
    assert team is not None
    assert other is not None
    assert (other.bucket, other.claim, other.registry) == ("", "", "")
    (claim,) = recording.of_type("kubernetes:core/v1:PersistentVolumeClaim")
    assert manifest(claim)["metadata"]["name"] == team.claim
    if cloud == "gke":
        (bucket,) = recording.of_type("gcp:storage/bucket:Bucket")
        assert team.bucket == f"gs://{manifest(bucket)['name']}"
    else:
        (account,) = recording.of_type("azure-native:storage:StorageAccount")
        (container,) = recording.of_type("azure-native:storage:BlobContainer")
        names = manifest(container)["containerName"], manifest(account)["accountName"]
        assert team.bucket == "abfss://{}@{}.dfs.core.windows.net".format(*names)


def test_images_are_pinned_by_digest() -> None:
    """Each default image has a digest; TPUs and the GPUs that its PyTorch lacks have none."""
    images = [pin.version for name, pin in PINS.items() if name.startswith("image-")]
    assert all(re.search(r"@sha256:[0-9a-f]{64}$", image) for image in images)
    assert {default_image(name, AMD64) for name in ("", "nvidia-l4", "nvidia-tesla-v100")} == set(images)
    assert {default_image(name, AMD64) for name in ("tpu-v6e-slice", "nvidia-tesla-p100")} == {""}
    assert (default_image("", ARM64), default_image("nvidia-gb200", ARM64)) == (
        PINS["image-python"].version,
        "",
    )
    made = profile(declare(_declared("gke")))
    gpu = next(pool for pool in made.pools if pool.accelerator)
    assert made.default_image(pool=gpu.name) == PINS["image-pytorch"].version
    data = made.data()
    for pool in data["pools"]:
        pool["image"] = ""
    with pytest.raises(ProfileError, match=r"has no default image\. Name one with --image"):
        Profile.load(data).default_image(pool=gpu.name)
