"""Google Cloud's responses as templates: ids, and the outputs that are not inputs.

Previews fill in values that only the cloud knows (`{address}`, `{certificate}`, `{dnsEndpoint}`, `{number}`)
with assumed ones, the rehearsal's fake cloud with its own. Sources: ids of compute, clusters, Filestore and
Artifact Registry follow the import sections of pulumi-gcp 10.2.0; output names are those of its classes. Self
links, service account addresses (`ACCOUNT@PROJECT.iam.gserviceaccount.com`) and the other ids follow Google's
documentation. Not compared with a live cloud.
"""

from collections.abc import Mapping
from typing import Final

from ebbtide.analysis.recording.templates import ResourceTemplate, Template

_COMPUTE: Final = "https://www.googleapis.com/compute/v1/"
_CONTAINER: Final = "https://container.googleapis.com/v1/"
_CLUSTER: Final = "projects/{project}/locations/{location}/clusters/{name}"
_EMAIL: Final = "{accountId}@{accountHost}"

RESOURCES: Final[Mapping[str, ResourceTemplate]] = {
    "gcp:compute/network:Network": ResourceTemplate(
        "projects/{project}/global/networks/{name}",
        {"name": "{name}", "selfLink": f"{_COMPUTE}projects/{{project}}/global/networks/{{name}}"},
    ),
    "gcp:compute/subnetwork:Subnetwork": ResourceTemplate(
        "projects/{project}/regions/{region}/subnetworks/{name}",
        {
            "name": "{name}",
            "region": "{region}",
            "selfLink": f"{_COMPUTE}projects/{{project}}/regions/{{region}}/subnetworks/{{name}}",
        },
    ),
    "gcp:compute/router:Router": ResourceTemplate(
        "projects/{project}/regions/{region}/routers/{name}",
        {
            "name": "{name}",
            "region": "{region}",
            "selfLink": f"{_COMPUTE}projects/{{project}}/regions/{{region}}/routers/{{name}}",
        },
    ),
    "gcp:compute/routerNat:RouterNat": ResourceTemplate(
        "{project}/{region}/{router:last}/{name}",
        {"name": "{name}", "region": "{region}"},
    ),
    "gcp:compute/address:Address": ResourceTemplate(
        "projects/{project}/regions/{region}/addresses/{name}",
        {
            "name": "{name}",
            "address": "{address}",
            "selfLink": f"{_COMPUTE}projects/{{project}}/regions/{{region}}/addresses/{{name}}",
        },
    ),
    "gcp:compute/firewall:Firewall": ResourceTemplate(
        "projects/{project}/global/firewalls/{name}",
        {"name": "{name}", "selfLink": f"{_COMPUTE}projects/{{project}}/global/firewalls/{{name}}"},
    ),
    "gcp:compute/resourcePolicy:ResourcePolicy": ResourceTemplate(
        "projects/{project}/regions/{region}/resourcePolicies/{name}",
        {
            "name": "{name}",
            "selfLink": f"{_COMPUTE}projects/{{project}}/regions/{{region}}/resourcePolicies/{{name}}",
        },
    ),
    "gcp:compute/reservation:Reservation": ResourceTemplate(
        "projects/{project}/zones/{zone}/reservations/{name}",
        {
            "name": "{name}",
            "selfLink": f"{_COMPUTE}projects/{{project}}/zones/{{zone}}/reservations/{{name}}",
        },
    ),
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
    "gcp:serviceaccount/iAMMember:IAMMember": ResourceTemplate("{serviceAccountId}/{role}/{member}", {}),
    "gcp:serviceaccount/iAMBinding:IAMBinding": ResourceTemplate("{serviceAccountId}/{role}", {}),
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": ResourceTemplate("{cryptoKeyId}/{role}/{member}", {}),
    "gcp:projects/iAMMember:IAMMember": ResourceTemplate("{project}/{role}/{member}", {}),
    "gcp:projects/iAMBinding:IAMBinding": ResourceTemplate("{project}/{role}", {}),
    "gcp:projects/service:Service": ResourceTemplate("{project}/{service}", {"project": "{project}"}),
    "gcp:storage/bucket:Bucket": ResourceTemplate(
        "{name}",
        {
            "name": "{name}",
            "url": "gs://{name}",
            "selfLink": "https://www.googleapis.com/storage/v1/b/{name}",
        },
    ),
    "gcp:storage/bucketIAMMember:BucketIAMMember": ResourceTemplate("b/{bucket}/{role}/{member}", {}),
    "gcp:filestore/instance:Instance": ResourceTemplate(
        "projects/{project}/locations/{location}/instances/{name}",
        {"name": "{name}"},
    ),
    "gcp:artifactregistry/repository:Repository": ResourceTemplate(
        "projects/{project}/locations/{location}/repositories/{repositoryId}",
        {
            "name": "{repositoryId}",
            "project": "{project}",
            "registryUri": "{location}-docker.pkg.dev/{project}/{repositoryId}",
        },
    ),
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember": ResourceTemplate(
        "projects/{project}/locations/{location}/repositories/{repository:last}/{role}/{member}",
        {},
    ),
}
"""Templates of resources by type."""

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
    "gcp:compute/getNetwork:getNetwork": {
        "id": "projects/{project}/global/networks/{name}",
        "name": "{name}",
        "selfLink": f"{_COMPUTE}projects/{{project}}/global/networks/{{name}}",
    },
    "gcp:compute/getSubnetwork:getSubnetwork": {
        "id": "projects/{project}/regions/{region}/subnetworks/{name}",
        "name": "{name}",
        "region": "{region}",
        "ipCidrRange": "{address}/32",
        "selfLink": f"{_COMPUTE}projects/{{project}}/regions/{{region}}/subnetworks/{{name}}",
    },
    "gcp:serviceaccount/getAccount:getAccount": {
        "id": f"projects/{{project}}/serviceAccounts/{_EMAIL}",
        "email": _EMAIL,
        "member": f"serviceAccount:{_EMAIL}",
        "name": f"projects/{{project}}/serviceAccounts/{_EMAIL}",
    },
}
"""Templates of results by function token."""
