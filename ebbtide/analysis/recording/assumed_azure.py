"""Assumed responses of Azure.

The templates are those of `answers_azure`. Not compared with a live cloud: they are only displayed.
"""

from collections.abc import Mapping
from typing import Final

from ebbtide.analysis.recording.answers_azure import (
    CLUSTER_OUTPUTS,
    NODE_RESOURCE_GROUP,
    RESOURCES,
    credentials,
)
from ebbtide.analysis.recording.assumed_values import ADDRESS, CERTIFICATE_BASE64, WORD, uuid_for
from ebbtide.analysis.recording.assumption_tables import Answer, Assumptions, Question, ResourceRule
from ebbtide.analysis.recording.templates import Derivation, Facts, invoke_rule, resource_rule
from ebbtide.analysis.recording.values import Plain, revealed

# A single subscription and tenant for all ids, so that they are consistent.
_TENANT: Final = uuid_for("tenant")
_SUBSCRIPTION: Final = uuid_for("subscription")


def _named(key: str) -> Derivation:
    """Return the derived name of a resource that declares none: the logical name and random letters."""

    def derive(facts: Facts) -> str | None:
        logical = facts.question.name
        return facts.question.text(key) or (f"{logical}{WORD}" if logical else None)

    return derive


def _node_group(facts: Facts) -> str:
    return NODE_RESOURCE_GROUP.format_map(facts)


def _rule(type_: str) -> ResourceRule:
    """Build a rule from a type's templates; the last input in its id is the resource's name."""
    template = RESOURCES[type_]
    name_key = template.id.rpartition("{")[2].rstrip("}")
    derived = {**_DERIVED, "name": _named(name_key), name_key: _named(name_key)}
    return resource_rule(derived, template.id, {"name": "{name}", **template.outputs})


_DERIVED: Final[Mapping[str, Derivation]] = {
    "name": _named("resourceName"),
    "subscriptionId": lambda _: _SUBSCRIPTION,
    "tenantId": lambda _: _TENANT,
    "nodeResourceGroup": _node_group,
    "suffix": lambda _: WORD,
    "address": lambda _: ADDRESS,
}


def _virtual_network(question: Question) -> Answer:
    """Return the network, with an id for each subnet declared inline."""
    answer = _rule("azure-native:network:VirtualNetwork")(question)
    declared = question.inputs.get("subnets")
    subnets: list[Plain] = []
    for subnet in declared if isinstance(declared, list) else []:
        name = subnet.get("name") if isinstance(subnet, dict) else None
        subnets.append({"id": f"{answer.id}/subnets/{name}"} if isinstance(name, str) else {})
    return Answer(answer.id, {**answer.outputs, **({"subnets": subnets} if subnets else {})})


def _identified(rule: ResourceRule) -> ResourceRule:
    """Extend a rule with user-assigned identities, which are a list of ids in inputs and an object in
    outputs.
    """

    def identified(question: Question) -> Answer:
        answer = rule(question)
        identity = revealed(question.inputs.get("identity"))
        ids = identity.get("userAssignedIdentities") if isinstance(identity, dict) else None
        if not isinstance(ids, list):
            return answer
        identities: dict[str, Plain] = {
            id_: {"clientId": uuid_for(f"client {id_}"), "principalId": uuid_for(f"principal {id_}")}
            for id_ in ids
            if isinstance(id_, str)
        }
        # A cluster with a system-assigned identity has no other identity.
        return Answer(answer.id, {**answer.outputs, "identity": {"userAssignedIdentities": identities}})

    return identified


def _managed_cluster(question: Question) -> Answer:
    answer = _rule("azure-native:containerservice:ManagedCluster")(question)
    outputs = dict(answer.outputs)
    if "oidcIssuerProfile" not in question.inputs:
        del outputs["oidcIssuerProfile"]
    return Answer(answer.id, outputs)


def _role_assignment(question: Question) -> Answer:
    name = question.text("roleAssignmentName") or uuid_for(f"role assignment {question.name}")
    scope = question.text("scope") or f"/subscriptions/{_SUBSCRIPTION}"
    return Answer(f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name}", {"name": name})


def _credentials(question: Question) -> dict[str, Plain]:
    name = question.text("resourceName") or f"{WORD}-cluster"
    group = question.text("resourceGroupName") or f"{WORD}-group"
    server = f"https://{name.lower()}-{WORD}.hcp.{WORD}.azmk8s.io:443"
    return credentials(
        "clusterUser", name, group, tenant=_TENANT, server=server, certificate=CERTIFICATE_BASE64
    )


def _unlisted(question: Question) -> Answer:
    return Answer(f"{question.name}-{WORD}-id")


_SPECIAL: Final[Mapping[str, ResourceRule]] = {
    "azure-native:network:VirtualNetwork": _virtual_network,
    "azure-native:authorization:RoleAssignment": _role_assignment,
    "azure-native:containerservice:ManagedCluster": _managed_cluster,
}

TABLES: Final = Assumptions(
    resources={type_: _identified(_SPECIAL.get(type_) or _rule(type_)) for type_ in RESOURCES},
    packages={"azure-native": _identified(_unlisted)},
    invokes={
        "azure-native:authorization:getClientConfig": invoke_rule(
            _DERIVED,
            {
                "clientId": "{uuid_client}",
                "objectId": "{uuid_object}",
                "subscriptionId": "{subscriptionId}",
                "tenantId": "{tenantId}",
            },
        ),
        "azure-native:containerservice:listManagedClusterUserCredentials": _credentials,
        "azure-native:containerservice:listManagedClusterAdminCredentials": _credentials,
        "azure-native:storage:listStorageAccountKeys": invoke_rule(
            _DERIVED, {"keys": [{"keyName": "key1", "permissions": "FULL", "value": "{uuid_key}"}]}
        ),
        "azure-native:containerservice:getManagedCluster": invoke_rule(
            _DERIVED,
            {
                "id": RESOURCES["azure-native:containerservice:ManagedCluster"].id,
                "name": "{name}",
                "location": "{location}",
                "type": "Microsoft.ContainerService/ManagedClusters",
                **CLUSTER_OUTPUTS,
            },
        ),
    },
)
"""Assumed responses of Azure."""
