import pytest

from ebbtide_rehearsal.cloud.kubernetes.kinds import Kind, is_list, is_patch, kind_of, kind_of_token

TOKENS = {
    "kubernetes:core/v1:Namespace": Kind("", "v1", "Namespace"),
    "kubernetes:core/v1:NamespacePatch": Kind("", "v1", "Namespace"),
    "kubernetes:apps/v1:Deployment": Kind("apps", "v1", "Deployment"),
    "kubernetes:rbac.authorization.k8s.io/v1:Role": Kind("rbac.authorization.k8s.io", "v1", "Role"),
    "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue": Kind("kueue.x-k8s.io", "v1beta2", "ClusterQueue"),
}


@pytest.mark.parametrize(("token", "kind"), TOKENS.items())
def test_a_token_stands_for_a_kind(token: str, kind: Kind) -> None:
    """Group, version and kind are in the token, the core group by its name."""
    assert kind_of_token(token) == kind


def test_a_manifests_kind_has_the_token_that_the_sdk_gives_it() -> None:
    """The core group is `core` in tokens and nothing in manifests."""
    for token, kind in TOKENS.items():
        found = kind_of({"apiVersion": kind.api_version, "kind": kind.kind})
        assert (found, found.token) == (kind, token.removesuffix("Patch"))
    assert kind_of({"apiVersion": "core/v1", "kind": "Secret"}).api_version == "v1"


def test_a_patch_is_a_type_of_another_kind_than_its_object() -> None:
    """A kind of somebody's own that is called a patch is none."""
    assert is_patch("kubernetes:core/v1:NamespacePatch", {"kind": "Namespace"})
    assert not is_patch("kubernetes:core/v1:Namespace", {"kind": "Namespace"})
    assert not is_patch("kubernetes:x.example/v1:OraclePatch", {"kind": "OraclePatch"})


def test_lists_are_those_of_kubernetes_kinds() -> None:
    """A custom kind may be called a list."""
    assert is_list("kubernetes:core/v1:ConfigMapList")
    assert is_list("kubernetes:apps/v1:DeploymentList")
    assert not is_list("kubernetes:core/v1:ConfigMap")
    assert not is_list("kubernetes:example.com/v1:AllowList")
