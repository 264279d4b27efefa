"""Google Cloud's responses: templates of ids and of outputs that are not inputs; assumed values for them.

Previews fill in values that only the cloud knows (`{address}`, `{certificate}`, `{dnsEndpoint}`, `{number}`)
with assumed ones, the rehearsal's fake cloud with its own. Sources: ids of compute, clusters, Filestore and
Artifact Registry follow the import sections of pulumi-gcp 10.2.0; output names are those of its classes. Self
links, service account addresses (`ACCOUNT@PROJECT.iam.gserviceaccount.com`), the DNS endpoint's host name and
the other ids follow Google's documentation. Not compared with a live cloud.
"""

from collections.abc import Mapping
from typing import Final

from ebbtide.analysis.recording.assumption_tables import (
    ADDRESS,
    CERTIFICATE_BASE64,
    WORD,
    Assumptions,
    Derivation,
    Facts,
    Question,
    ResourceTemplate,
    Template,
    Text,
    invoke_rule,
    resource_rule,
)
from ebbtide.analysis.recording.values import Plain
from ebbtide.declaration.catalog.clouds import account_host

_COMPUTE: Final = "https://www.googleapis.com/compute/v1/"
_CONTAINER: Final = "https://container.googleapis.com/v1/"
_CLUSTER: Final = "projects/{project}/locations/{location}/clusters/{name}"
_EMAIL: Final = "{accountId}@{accountHost}"
_AGENT: Final = "service-{number}@gcp-sa-{service:label}.iam.gserviceaccount.com"
_STORAGE_AGENT: Final = "service-{number}@gs-project-accounts.iam.gserviceaccount.com"
_NUMBER: Final = "000000000000"  # a project number that no project has
# Regions whose zones do not start at a (compute/docs/regions-zones, 2026-11); all others are assumed to have
# zones a, b and c.
_ZONES: Final = {"us-east1": "bcd", "europe-west1": "bcd"}


def _linked(id_: str, **outputs: str) -> ResourceTemplate:
    """Return the template of a resource of Compute Engine, whose link ends in its id."""
    return ResourceTemplate(id_, {"name": "{name}", **outputs, "selfLink": _COMPUTE + id_})


RESOURCES: Final[Mapping[str, ResourceTemplate]] = {
    "gcp:compute/network:Network": _linked("projects/{project}/global/networks/{name}"),
    "gcp:compute/subnetwork:Subnetwork": _linked(
        "projects/{project}/regions/{region}/subnetworks/{name}", region="{region}"
    ),
    "gcp:compute/router:Router": _linked(
        "projects/{project}/regions/{region}/routers/{name}", region="{region}"
    ),
    "gcp:compute/routerNat:RouterNat": ResourceTemplate(
        "{project}/{region}/{router:last}/{name}",
        {"name": "{name}", "region": "{region}"},
    ),
    "gcp:compute/address:Address": _linked(
        "projects/{project}/regions/{region}/addresses/{name}", address="{address}"
    ),
    "gcp:compute/firewall:Firewall": _linked("projects/{project}/global/firewalls/{name}"),
    "gcp:compute/resourcePolicy:ResourcePolicy": _linked(
        "projects/{project}/regions/{region}/resourcePolicies/{name}"
    ),
    "gcp:compute/futureReservation:FutureReservation": ResourceTemplate(
        "projects/{project}/zones/{zone}/futureReservations/{name}",
        {"name": "{name}", "project": "{project}", "zone": "{zone}"},
    ),
    "gcp:compute/reservation:Reservation": _linked("projects/{project}/zones/{zone}/reservations/{name}"),
    "gcp:container/cluster:Cluster": ResourceTemplate(
        _CLUSTER,
        {
            "name": "{name}",
            "project": "{project}",
            "location": "{location}",
            "endpoint": "{address}",
            "selfLink": _CONTAINER + _CLUSTER,
            "masterAuth": {"clusterCaCertificate": "{certificate}"},
            "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": "{dnsEndpoint}"}},
        },
    ),
    "gcp:container/nodePool:NodePool": ResourceTemplate(
        "projects/{project}/locations/{location}/clusters/{cluster:last}/nodePools/{name}",
        {"name": "{name}", "project": "{project}", "location": "{location}"},
    ),
    "gcp:serviceaccount/account:Account": ResourceTemplate(
        f"projects/{{project}}/serviceAccounts/{_EMAIL}",
        {
            "email": _EMAIL,
            "member": f"serviceAccount:{_EMAIL}",
            "name": f"projects/{{project}}/serviceAccounts/{_EMAIL}",
            "project": "{project}",
        },
    ),
    "gcp:serviceaccount/iAMMember:IAMMember": ResourceTemplate("{serviceAccountId}/{role}/{member}"),
    "gcp:serviceaccount/iAMBinding:IAMBinding": ResourceTemplate("{serviceAccountId}/{role}"),
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": ResourceTemplate("{cryptoKeyId}/{role}/{member}"),
    "gcp:projects/iAMMember:IAMMember": ResourceTemplate("{project}/{role}/{member}"),
    "gcp:projects/iAMBinding:IAMBinding": ResourceTemplate("{project}/{role}"),
    "gcp:projects/service:Service": ResourceTemplate("{project}/{service}", {"project": "{project}"}),
    "gcp:projects/serviceIdentity:ServiceIdentity": ResourceTemplate(
        "projects/{project}/services/{service}",
        {"email": _AGENT, "member": f"serviceAccount:{_AGENT}"},
    ),
    "gcp:storage/bucket:Bucket": ResourceTemplate(
        "{name}",
        {
            "name": "{name}",
            "url": "gs://{name}",
            "selfLink": "https://www.googleapis.com/storage/v1/b/{name}",
        },
    ),
    "gcp:storage/bucketIAMMember:BucketIAMMember": ResourceTemplate("b/{bucket}/{role}/{member}"),
    "gcp:filestore/instance:Instance": ResourceTemplate(
        "projects/{project}/locations/{location}/instances/{name}",
        {"name": "{name}", "networks": [{"ipAddresses": ["{address}"]}]},
    ),
    "gcp:artifactregistry/repository:Repository": ResourceTemplate(
        "projects/{project}/locations/{location}/repositories/{repositoryId}",
        {
            "name": "{repositoryId}",
            "project": "{project}",
            "registryUri": "{location}-docker.pkg.dev/{project:path}/{repositoryId}",
        },
    ),
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember": ResourceTemplate(
        "projects/{project}/locations/{location}/repositories/{repository:last}/{role}/{member}"
    ),
}
"""Templates of resources by type."""


def _with_id(template: ResourceTemplate) -> dict[str, Template]:
    return {"id": template.id, **template.outputs}


INVOKES: Final[Mapping[str, Mapping[str, Template]]] = {
    "gcp:container/getCluster:getCluster": {
        "id": _CLUSTER,
        "name": "{name}",
        "project": "{project}",
        "location": "{location}",
        "endpoint": "{address}",
        "selfLink": _CONTAINER + _CLUSTER,
        "masterAuths": [
            {
                "clusterCaCertificate": "{certificate}",
                "clientCertificate": "",
                "clientKey": "",
                "clientCertificateConfigs": [],
            }
        ],
        "controlPlaneEndpointsConfigs": [
            {
                "dnsEndpointConfigs": [
                    {
                        "endpoint": "{dnsEndpoint}",
                        "allowExternalTraffic": True,
                        "enableK8sCertsViaDns": False,
                        "enableK8sTokensViaDns": False,
                    }
                ],
                "ipEndpointsConfigs": [{"enabled": False}],
            }
        ],
        "workloadIdentityConfigs": [{"workloadPool": "{project}.svc.id.goog"}],
        "network": "projects/{project}/global/networks/default",
        "subnetwork": "projects/{project}/regions/{region}/subnetworks/default",
    },
    "gcp:organizations/getClientConfig:getClientConfig": {
        "id": "projects/{project}/regions/{region}/zones/{zone}",
        "accessToken": "{accessToken}",
        "project": "{project}",
        "region": "{region}",
        "zone": "{zone}",
        "defaultLabels": {},
    },
    "gcp:organizations/getProject:getProject": {
        "id": "projects/{projectId}",
        "projectId": "{projectId}",
        "name": "{projectId}",
        "number": "{number}",
    },
    "gcp:compute/getNetwork:getNetwork": _with_id(RESOURCES["gcp:compute/network:Network"]),
    "gcp:compute/getSubnetwork:getSubnetwork": {
        **_with_id(RESOURCES["gcp:compute/subnetwork:Subnetwork"]),
        "ipCidrRange": "{address}/32",
    },
    "gcp:storage/getProjectServiceAccount:getProjectServiceAccount": {
        "id": _STORAGE_AGENT,
        "project": "{project}",
        "emailAddress": _STORAGE_AGENT,
        "member": f"serviceAccount:{_STORAGE_AGENT}",
    },
    "gcp:serviceaccount/getAccount:getAccount": _with_id(RESOURCES["gcp:serviceaccount/account:Account"]),
}
"""Templates of results by function token."""


def _name(facts: Facts) -> str | None:
    """Return Pulumi's auto-name for a resource without a declared name: the logical name and random
    digits."""
    return f"{facts.question.name}-{WORD}" if facts.question.name else None


def _region(facts: Facts) -> str | None:
    location = facts.known("location") or facts.known("zone")
    return format(Text(location), "region") if location else None


_DERIVED: Final[Mapping[str, Derivation]] = {
    "name": _name,
    "location": lambda facts: facts.known("zone") or facts.known("region"),
    "region": _region,
    "accountHost": lambda facts: account_host("{project}".format_map(facts)),
    "address": lambda _: ADDRESS,
    "certificate": lambda _: CERTIFICATE_BASE64,
    "dnsEndpoint": f"gke-{WORD}-{{name}}-{_NUMBER}.{{region}}.gke.goog".format_map,
    "number": lambda _: _NUMBER,
    "accessToken": lambda _: f"{WORD}-access-token",
}


def _zones(question: Question) -> dict[str, Plain]:
    region = question.text("region") or question.setting("region") or f"{WORD}-region"
    names: list[Plain] = [f"{region}-{letter}" for letter in _ZONES.get(region, "abc")]
    return {"id": f"projects/{WORD}/regions/{region}", "names": names}


TABLES: Final = Assumptions(
    resources={type_: resource_rule(_DERIVED, *entry) for type_, entry in RESOURCES.items()},
    invokes={
        **{token: invoke_rule(_DERIVED, result) for token, result in INVOKES.items()},
        "gcp:compute/getZones:getZones": _zones,
    },
)
"""Assumed responses of Google Cloud."""
