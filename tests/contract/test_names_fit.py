"""Derived names fit the limits of their type, for any declaration."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.declaration.model import physical_names
from ebbtide.declaration.model.physical_names import NameLimit, account_name, fitting
from tests.declarations import BASES, Declaration, changed
from tests.synth import synth

LIMITS: dict[tuple[str, str], str] = {
    (type_, field): pattern
    for type_, field, pattern, _ in yaml.safe_load((Path(__file__).parent / "names.yaml").read_text())
}
"""What a name may be, by type and field."""

# kubernetes.io, overview/working-with-objects/names and labels (2026).
_SUBDOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?")
_LABELLED = ("Namespace", "Service", "LocalQueue")
_COLONS = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")

_CLUSTER = {
    "gke": st.from_regex(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True)
    | st.sampled_from(["x", "x" * 40, "google-lab", "x-" + "y" * 38]),
    "aks": st.from_regex(r"[A-Za-z0-9]([-_A-Za-z0-9]{0,61}[A-Za-z0-9])?", fullmatch=True)
    | st.sampled_from(["x", "X" * 63, "Windows-lab", "a_b", "a" + "_" * 61 + "b", "9"]),
}
_POOL = {
    "gke": st.from_regex(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True) | st.just("p" * 40),
    "aks": st.from_regex(r"[a-z][a-z0-9]{0,11}", fullmatch=True) | st.just("p" * 12),
}
_DNS = st.from_regex(_LABEL, fullmatch=True) | st.sampled_from(
    ["0", "ml", "a" * 63, "google", "microsoft-ml", "login"]
)
_PROJECTS = st.sampled_from(["acme-ml", "p" * 30, "acme.example:ml-lab", "google.com:skia-buildbots"])
_NODES = {"overrides": {"nodeResourceGroup": "nodes"}}


@st.composite
def _declaration(draw: st.DrawFn, cloud: str) -> Declaration:
    """A declaration with everything in it that has a name, under names of every valid form."""
    system = BASES[cloud]["pools"][0]
    machine = {"gke": "n2-standard-8", "aks": "Standard_D8s_v5"}[cloud]
    pools = draw(
        st.lists(_POOL[cloud].filter(lambda name: name != "system"), unique=True, min_size=1, max_size=2)
    )
    teams = draw(st.lists(_DNS.filter(lambda name: name != "default"), unique=True, min_size=1, max_size=2))
    files = {"gke": "filestore", "aks": "azure-files"}[cloud]
    everything = {"bucket": {}, "registry": {}, "volume": {"kind": files}}
    # AKS' own name of the nodes' resource group has the cluster's twice, which a rule limits.
    own = {"gke": st.fixed_dictionaries({"project": _PROJECTS}), "aks": st.just(_NODES)}
    return changed(
        BASES[cloud],
        name=draw(_CLUSTER[cloud]),
        cloud=BASES[cloud]["cloud"] | draw(own[cloud]),
        pools=[
            {**system, "nodes": {"max": 6}},
            *({"name": name, "machine": machine, "capacity": "spot", "nodes": {"max": 4}} for name in pools),
        ],
        teams=[{"name": name, **everything} for name in teams if not name.startswith("kube-")],
        queues=[{"name": draw(_DNS), "pools": pools}],
        addons={"gke": {"pipelines": {"artifacts": "bucket"}}, "aks": {"logs": {}, "metrics": {}}}[cloud],
    )


def _misfits(recording: Recording) -> Iterator[str]:
    for resource in recording:
        if resource.custom and resource.type.startswith("kubernetes:"):
            yield from _kubernetes(resource)
        elif resource.custom and not resource.type.startswith("pulumi:"):
            for (kind, field), pattern in LIMITS.items():
                name = resource.inputs.get(field)
                if kind == resource.type and isinstance(name, str) and not re.fullmatch(pattern, name):
                    yield f"{kind}.{field}: {name}"


def _kubernetes(resource: Resource) -> Iterator[str]:
    metadata = cast("dict[str, Any]", resource.inputs.get("metadata") or {})
    kind, name = str(resource.inputs.get("kind") or ""), metadata.get("name")
    allowed = _LABEL if kind in _LABELLED else _SUBDOMAIN
    if isinstance(name, str) and not allowed.fullmatch(name.replace(":", "-") if kind in _COLONS else name):
        yield f"{kind} {name}"
    for key, value in {**metadata.get("labels", {})}.items():
        if isinstance(value, str) and not _VALUE.fullmatch(value):
            yield f"{kind} {name}: label {key}={value}"


@pytest.mark.parametrize("cloud", ["gke", "aks"])
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_names_fit_for_every_valid_declaration(cloud: str, data: st.DataObject) -> None:
    """Each name in the graph is one that its type can have, and every type with names has a limit here."""
    recording = synth(data.draw(_declaration(cloud)))
    assert list(_misfits(recording)) == []
    named = {kind for kind, _ in LIMITS}
    unnamed = ("kubernetes:", "pulumi:", "gcp:projects/", "gcp:serviceaccount/iAM", "gcp:storage/bucketIAM")
    made = {resource.type for resource in recording if resource.custom}
    assert {
        kind for kind in made - named if not kind.startswith((*unnamed, "gcp:artifactregistry/repositoryIam"))
    } == set()


_FITTED = [
    limit
    for limit in vars(physical_names).values()
    if isinstance(limit, NameLimit) and re.fullmatch(f"[{limit.characters}]", "-")
]


@given(st.sampled_from(_FITTED), st.from_regex(r"[a-z][-a-z0-9_.:]{0,130}[a-z0-9]", fullmatch=True))
def test_any_name_is_made_to_fit(limit: NameLimit, name: str) -> None:
    """A name that fits stays; another one is within the limit, and ends in a hash of the whole."""
    fitted = fitting(name, limit)
    assert limit.holds(fitted)
    assert (fitted == name) is limit.holds(name)
    assert fitting(f"{name}0", limit) != fitted


@pytest.mark.parametrize("word", ["microsoft", "windows", "WWindowsindows", "xbox-live", "login", "azure"])
def test_reserved_words_are_left_out(word: str) -> None:
    """Azure refuses public names with a reserved word, so a derived name has another one in its place."""
    prefix, account = fitting(word, physical_names.DNS_PREFIX), account_name("s", "train", word)
    for name in (prefix, account):
        assert not re.search(r"microsoft|windows|xbox|^login|^azure$", name, re.IGNORECASE), name
    assert fitting("lab-login", physical_names.DNS_PREFIX) == "lab-login"


@given(st.text(max_size=80), st.text(max_size=80))
def test_account_names_fit(cluster: str, team: str) -> None:
    """Storage accounts and container registries share the narrower of their limits."""
    name = account_name("subscription", cluster, team)
    assert name != account_name("other", cluster, team)
    assert physical_names.STORAGE_ACCOUNT.holds(name)
    assert physical_names.CONTAINER_REGISTRY.holds(name)
