"""Assumed responses of Google Cloud.

Sources: ids of compute, clusters, Filestore and Artifact Registry follow the import sections of pulumi-gcp
10.2.0; output names are those of its classes. Self links, service account addresses
(`ACCOUNT@PROJECT.iam.gserviceaccount.com`), the DNS endpoint's host name and the other ids follow Google's
documentation. Not compared with a live cloud: they are displayed only, and decide nothing.
"""

from collections.abc import Mapping
from typing import Final

from ebbtide.catalog.clouds import account_host
from ebbtide.recording.assumed_values import ADDRESS, CERTIFICATE_BASE64, WORD
from ebbtide.recording.assumption_tables import Assumptions, Question
from ebbtide.recording.templates import Derivation, Facts, Template, Text, invoke_rule, resource_rule
from ebbtide.recording.values import Plain

_NUMBER: Final = "000000000000"  # a project number that no project has


def _name(facts: Facts) -> str | None:
    """Pulumi's auto-name where no name is declared: the logical name and random digits."""
    return f"{facts.question.name}-{WORD}" if facts.question.name else None


def _location(facts: Facts) -> str | None:
    return facts.known("zone") or facts.known("region")


def _region(facts: Facts) -> str | None:
    location = facts.known("location") or facts.known("zone")
    return format(Text(location), "region") if location else None


_DERIVED: Final[Mapping[str, Derivation]] = {
    "name": _name,
    "location": _location,
    "region": _region,
    "accountHost": lambda facts: account_host("{project}".format_map(facts)),
}

_COMPUTE: Final = "https://www.googleapis.com/compute/v1/"
_CONTAINER: Final = "https://container.googleapis.com/v1/"
_CLUSTER: Final = "projects/{project}/locations/{location}/clusters/{name}"
_DNS_ENDPOINT: Final = f"gke-{WORD}-{{name}}-{_NUMBER}.{{region}}.gke.goog"
_EMAIL: Final = "{accountId}@{accountHost}"

# By type: the id, and the outputs that are not inputs. Everything else stays unknown.
_RESOURCES: Final[Mapping[str, tuple[str, Mapping[str, Template]]]] = {
    "gcp:compute/network:Network": (
        "projects/{project}/global/networks/{name}",
        {"name": "{name}", "selfLink": f"{_COMPUTE}projects/{{project}}/global/networks/{{name}}"},
    ),
    "gcp:compute/subnetwork:Subnetwork": (
        "projects/{project}/regions/{region}/subnetworks/{name}",
        {
            "name": "{name}",
            "region": "{region}",
            "selfLink": f"{_COMPUTE}projects/{{project}}/regions/{{region}}/subnetworks/{{name}}",
        },
    ),
    "gcp:compute/router:Router": (
        "projects/{project}/regions/{region}/routers/{name}",
        {
            "name": "{name}",
            "region": "{region}",
            "selfLink": f"{_COMPUTE}projects/{{project}}/regions/{{region}}/routers/{{name}}",
        },
    ),
    "gcp:compute/routerNat:RouterNat": (
        "{project}/{region}/{router:last}/{name}",
        {"name": "{name}", "region": "{region}"},
    ),
    "gcp:compute/address:Address": (
        "projects/{project}/regions/{region}/addresses/{name}",
        {
            "name": "{name}",
            "address": ADDRESS,
            "selfLink": f"{_COMPUTE}projects/{{project}}/regions/{{region}}/addresses/{{name}}",
        },
    ),
    "gcp:compute/firewall:Firewall": (
        "projects/{project}/global/firewalls/{name}",
        {"name": "{name}", "selfLink": f"{_COMPUTE}projects/{{project}}/global/firewalls/{{name}}"},
    ),
    "gcp:compute/resourcePolicy:ResourcePolicy": (
        "projects/{project}/regions/{region}/resourcePolicies/{name}",
        {
            "name": "{name}",
            "selfLink": f"{_COMPUTE}projects/{{project}}/regions/{{region}}/resourcePolicies/{{name}}",
        },
    ),
    "gcp:compute/reservation:Reservation": (
        "projects/{project}/zones/{zone}/reservations/{name}",
        {
            "name": "{name}",
            "selfLink": f"{_COMPUTE}projects/{{project}}/zones/{{zone}}/reservations/{{name}}",
        },
    ),
    "gcp:container/cluster:Cluster": (
        _CLUSTER,
        {
            "name": "{name}",
            "project": "{project}",
            "location": "{location}",
            "endpoint": ADDRESS,
            "selfLink": _CONTAINER + _CLUSTER,
            "masterAuth": {"clusterCaCertificate": CERTIFICATE_BASE64},
            "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": _DNS_ENDPOINT}},
        },
    ),
    "gcp:container/nodePool:NodePool": (
        "projects/{project}/locations/{location}/clusters/{cluster:last}/nodePools/{name}",
        {"name": "{name}", "project": "{project}", "location": "{location}"},
    ),
    "gcp:serviceaccount/account:Account": (
        f"projects/{{project}}/serviceAccounts/{_EMAIL}",
        {
            "email": _EMAIL,
            "member": f"serviceAccount:{_EMAIL}",
            "name": f"projects/{{project}}/serviceAccounts/{_EMAIL}",
            "project": "{project}",
        },
    ),
    "gcp:serviceaccount/iAMMember:IAMMember": ("{serviceAccountId}/{role}/{member}", {}),
    "gcp:serviceaccount/iAMBinding:IAMBinding": ("{serviceAccountId}/{role}", {}),
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": ("{cryptoKeyId}/{role}/{member}", {}),
    "gcp:projects/iAMMember:IAMMember": ("{project}/{role}/{member}", {}),
    "gcp:projects/iAMBinding:IAMBinding": ("{project}/{role}", {}),
    "gcp:projects/service:Service": ("{project}/{service}", {"project": "{project}"}),
    "gcp:storage/bucket:Bucket": (
        "{name}",
        {
            "name": "{name}",
            "url": "gs://{name}",
            "selfLink": "https://www.googleapis.com/storage/v1/b/{name}",
        },
    ),
    "gcp:storage/bucketIAMMember:BucketIAMMember": ("b/{bucket}/{role}/{member}", {}),
    "gcp:filestore/instance:Instance": (
        "projects/{project}/locations/{location}/instances/{name}",
        {"name": "{name}"},
    ),
    "gcp:artifactregistry/repository:Repository": (
        "projects/{project}/locations/{location}/repositories/{repositoryId}",
        {
            "name": "{repositoryId}",
            "project": "{project}",
            "registryUri": "{location}-docker.pkg.dev/{project}/{repositoryId}",
        },
    ),
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember": (
        "projects/{project}/locations/{location}/repositories/{repository:last}/{role}/{member}",
        {},
    ),
}

_INVOKES: Final[Mapping[str, Mapping[str, Template]]] = {
    "gcp:container/getCluster:getCluster": {
        "id": _CLUSTER,
        "name": "{name}",
        "project": "{project}",
        "location": "{location}",
        "endpoint": ADDRESS,
        "selfLink": _CONTAINER + _CLUSTER,
        "masterAuths": [
            {
                "clusterCaCertificate": CERTIFICATE_BASE64,
                "clientCertificate": "",
                "clientKey": "",
                "clientCertificateConfigs": [],
            }
        ],
        "controlPlaneEndpointsConfigs": [
            {
                "dnsEndpointConfigs": [
                    {
                        "endpoint": _DNS_ENDPOINT,
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
    },
    "gcp:organizations/getClientConfig:getClientConfig": {
        "id": "projects/{project}/regions/{region}/zones/{zone}",
        "accessToken": f"{WORD}-access-token",
        "project": "{project}",
        "region": "{region}",
        "zone": "{zone}",
        "defaultLabels": {},
    },
    "gcp:organizations/getProject:getProject": {
        "id": "projects/{projectId}",
        "projectId": "{projectId}",
        "name": "{projectId}",
        "number": _NUMBER,
    },
    "gcp:compute/getNetwork:getNetwork": {
        "id": "projects/{project}/global/networks/{name}",
        "name": "{name}",
        "selfLink": f"{_COMPUTE}projects/{{project}}/global/networks/{{name}}",
    },
    "gcp:compute/getSubnetwork:getSubnetwork": {
        "id": "projects/{project}/regions/{region}/subnetworks/{name}",
        "name": "{name}",
        "region": "{region}",
        "selfLink": f"{_COMPUTE}projects/{{project}}/regions/{{region}}/subnetworks/{{name}}",
    },
    "gcp:serviceaccount/getAccount:getAccount": {
        "id": f"projects/{{project}}/serviceAccounts/{_EMAIL}",
        "email": _EMAIL,
        "member": f"serviceAccount:{_EMAIL}",
        "name": f"projects/{{project}}/serviceAccounts/{_EMAIL}",
    },
}

# Regions whose zones do not start at a (compute/docs/regions-zones, 2026-11); all others are assumed to have
# a, b and c.
_ZONES: Final = {"us-east1": "bcd", "europe-west1": "bcd"}


def _zones(question: Question) -> dict[str, Plain]:
    region = question.text("region") or question.setting("region") or f"{WORD}-region"
    names: list[Plain] = [f"{region}-{letter}" for letter in _ZONES.get(region, "abc")]
    return {"id": f"projects/{WORD}/regions/{region}", "names": names}


TABLES: Final = Assumptions(
    resources={type_: resource_rule(_DERIVED, *entry) for type_, entry in _RESOURCES.items()},
    invokes={
        **{token: invoke_rule(_DERIVED, result) for token, result in _INVOKES.items()},
        "gcp:compute/getZones:getZones": _zones,
    },
)
"""Assumed responses of Google Cloud."""
