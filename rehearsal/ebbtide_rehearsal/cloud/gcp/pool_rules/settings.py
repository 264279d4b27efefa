"""Rules for a pool's name, and for settings that depend on its cluster."""

import re
from collections.abc import Callable
from typing import Final

from ebbtide.declaration.catalog import PINS
from ebbtide_rehearsal.cloud.gcp.clusters import channel_of
from ebbtide_rehearsal.cloud.gcp.pool_rules.rule import PoolRequest, pool_rule
from ebbtide_rehearsal.cloud.gcp.request import inputs_of

_GRACE: Final = "nodeConfig.kubeletConfig.shutdownGracePeriodSeconds"
_NAME: Final = re.compile(r"^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$")


def _name(pool: PoolRequest) -> str | None:
    name = pool.request.name
    if _NAME.match(name):
        return None
    return (
        f'Invalid node pool name "{name}": it must start with a lowercase letter followed by up to 39 '
        "lowercase letters, numbers, or hyphens, and cannot end with a hyphen."
    )


def _upgrades(pool: PoolRequest) -> str | None:
    """In a release channel nodes follow the control plane. Repair may now be off, as flex-start requires."""
    channel = channel_of(pool.cluster)
    off = pool.fields.has("management") and not pool.fields.flag("management.autoUpgrade")
    return f"Auto_upgrade cannot be false when release_channel {channel} is set." if channel and off else None


_TAG: Final = re.compile(r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$")
_MOST_TAGS: Final = 64


def _tags(pool: PoolRequest) -> str | None:
    tags = pool.fields.texts("nodeConfig.tags")
    if len(tags) > _MOST_TAGS:
        return f"{len(tags)} network tags are given, and an instance has at most {_MOST_TAGS}."
    wrong = next((tag for tag in tags if not _TAG.match(tag)), None)
    return None if wrong is None else f"Invalid value for field 'tags': '{wrong}'."


def _identities(pool: PoolRequest) -> str | None:
    mode = pool.fields.text("nodeConfig.workloadMetadataConfig.mode")
    has = "workloadIdentityConfig" in pool.cluster.inputs or "workloadIdentityConfig" in pool.cluster.state
    if mode == "GKE_METADATA" and not has:
        return "GKE_METADATA requires Workload Identity to be enabled on the cluster."
    return None


def _version(pool: PoolRequest) -> str | None:
    request = pool.fields.text("version").split("-")[0].split(".")
    master = str(pool.cluster.state.get("masterVersion", "")).split("-")[0].split(".")
    if all(part.isdigit() for part in (*request, *master)) and list(map(int, request)) > list(
        map(int, master)
    ):
        newer, older = pool.fields.text("version"), pool.cluster.state["masterVersion"]
        return f'Node version "{newer}" must not be greater than master version "{older}".'
    return None


_FEATURES: Final[tuple[tuple[str, str, Callable[[PoolRequest], bool]], ...]] = (
    ("gke-queued-provisioning", "Flex start", lambda pool: pool.scheduled),
    ("gke-shutdown-grace", "Shutdown grace period", lambda pool: pool.fields.has(_GRACE)),
)
"""Features with the name of the pinned version that introduced them."""


def _features(pool: PoolRequest) -> str | None:
    """Compare versions; a minor version alone is its newest patch version (GKE docs, versioning)."""
    version = inputs_of(pool.cluster).text("minMasterVersion")
    parts = [int(part) for part in re.findall(r"\d+", version)]
    for pin, feature, uses in _FEATURES:
        least = [int(part) for part in re.findall(r"\d+", PINS[pin].version)]
        if parts and uses(pool) and parts < least[: len(parts)]:
            return f"{feature} requires GKE version {PINS[pin].version} or later, the cluster has {version}."
    return None


def _service_account(pool: PoolRequest) -> str | None:
    account = pool.fields.text("nodeConfig.serviceAccount")
    if account in ("", "default") or "@" in account:
        return None
    return f'Service account "{account}" does not exist.'


RULES: Final = (
    pool_rule("features of the version", "catalog/versions.py", _features),
    pool_rule(
        "a service account by e-mail", "GKE v1 API, NodeConfig.serviceAccount (2026)", _service_account
    ),
    pool_rule("a name", "GKE v1 API, NodePool.name (2026)", _name),
    pool_rule(
        "upgrades in a release channel",
        "kaiwaehner/hivemq-mqtt-tensorflow-kafka-realtime-iot-machine-learning-training-inference#47; "
        "GKE docs, release-channels (2026)",
        _upgrades,
    ),
    pool_rule("network tags", "Compute docs, add-remove-network-tags (2026)", _tags),
    pool_rule("identities of pods", "GKE docs, workload-identity (2026)", _identities),
    pool_rule("no node newer than the control plane", "Kubernetes version-skew-policy (2026)", _version),
)
