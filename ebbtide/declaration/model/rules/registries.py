"""Rules for teams' container registries: cloud support, access, cost and deletion."""

from collections.abc import Iterator

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.members import is_object_id
from ebbtide.declaration.model.pool import DEFAULT_ACCOUNT
from ebbtide.declaration.model.rules.rule import Severity, cluster_rule, pools_of
from ebbtide.declaration.model.tenancy import Registry, Team

_ACR = "azure-container-registry docs, container-registry-skus.md (2026)"
_ACR_ROLES = "azure-container-registry docs, container-registry-rbac-built-in-roles-overview.md (2026)"
_PULLS = "Artifact Registry docs, integrate-gke (2026)"


def _registries(cluster: Cluster) -> Iterator[tuple[str, Team, Registry]]:
    for number, team in enumerate(cluster.teams):
        if team.registry is not None:
            yield f"teams[{number}]", team, team.registry


@cluster_rule("registry settings only on GKE", _ACR, CloudKind.AKS)
def _only_on_gke(cluster: Cluster) -> Iterator[Fault]:
    for path, _, registry in _registries(cluster):
        if registry.immutable_tags:
            yield Fault(
                f"{path}.registry.immutableTags",
                "AKS does not support immutableTags: a container registry locks individual images.",
                "Tags could still be overwritten.",
                "Omit immutableTags, and refer to images by digest.",
            )
        if registry.delete_untagged_days is not None:
            yield Fault(
                f"{path}.registry.deleteUntaggedDays",
                "AKS does not support deleteUntaggedDays: only a container registry of the Premium tier "
                "deletes untagged images, and this one is Basic.",
                "Untagged images would stay.",
                "Omit deleteUntaggedDays, and run `acr purge` with `az acr run` regularly.",
            )


@cluster_rule("registry has members", f"{_PULLS}; {_ACR_ROLES}", severity=Severity.WARNED)
def _without_members(cluster: Cluster) -> Iterator[Fault]:
    for path, team, _ in _registries(cluster):
        if not team.members:
            yield Fault(
                f"{path}.registry",
                f"Team {team.name} has a registry and no members.",
                "Only administrators of the cloud could push images.",
                "Write members.",
            )


@cluster_rule(
    "registry push needs object id",
    f"{_ACR_ROLES}; azure-native 3.29.0, RoleAssignment.principalId",
    CloudKind.AKS,
    Severity.WARNED,
)
def _user_names(cluster: Cluster) -> Iterator[Fault]:
    for path, team, _ in _registries(cluster):
        for index, member in enumerate(team.members):
            if not is_object_id(member):
                yield Fault(
                    f"{path}.members[{index}]",
                    f"Azure role assignments need an object id, and {member} is a user name.",
                    "The user cannot push images to the team's registry.",
                    "Write the object id of a group of the user.",
                )


@cluster_rule("registry pull by default account", _PULLS, CloudKind.GKE, Severity.WARNED)
def _default_account(cluster: Cluster) -> Iterator[Fault]:
    if not any(_registries(cluster)):
        return
    for pool in pools_of(cluster):
        account = pool.pool.service_account or (DEFAULT_ACCOUNT if cluster.cloud.existing else None)
        if account == DEFAULT_ACCOUNT:
            yield Fault(
                pool.at("serviceAccount"),
                "Nodes of this pool use the project's default service account, which has no access to the "
                "teams' registries.",
                "Pods with a team's image fail with ImagePullBackOff, unless that account already has "
                "access.",
                "Write the e-mail of another account.",
            )


@cluster_rule(
    "registry cost while empty",
    "azure.microsoft.com/pricing/details/container-registry (2026)",
    CloudKind.AKS,
    Severity.WARNED,
)
def _bills_while_empty(cluster: Cluster) -> Iterator[Fault]:
    for path, _, _ in _registries(cluster):
        yield Fault(
            f"{path}.registry",
            "A container registry of the Basic tier costs about 0.17 USD a day, even while empty.",
            "The idle cluster would cost that much more.",
            "Declare a registry for only one team, if the others can use its images.",
        )


@cluster_rule(
    "registry images deleted",
    "Artifact Registry docs, repositories/delete-repo (2026)",
    severity=Severity.WARNED,
)
def _goes_with_images(cluster: Cluster) -> Iterator[Fault]:
    for path, _, registry in _registries(cluster):
        if registry.keep is False and not cluster.is_ephemeral:
            yield Fault(
                f"{path}.registry.keep",
                "The registry of a permanent cluster is deleted with all of its images.",
                "A destroy would delete images that exist nowhere else.",
                "Omit keep, unless that is intended.",
            )
