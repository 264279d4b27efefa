"""The resource types that there are: all that the program can make on Google Cloud."""

from collections.abc import Mapping
from typing import Final

from ebbtide_rehearsal.cloud.gcp import asked
from ebbtide_rehearsal.cloud.gcp.clusters import CLUSTER_KIND
from ebbtide_rehearsal.cloud.gcp.identities import (
    ACCOUNT_KIND,
    ACCOUNT_MEMBER_KIND,
    BUCKET_MEMBER_KIND,
    KEY_MEMBER_KIND,
    PROJECT_MEMBER_KIND,
)
from ebbtide_rehearsal.cloud.gcp.kind import Kind
from ebbtide_rehearsal.cloud.gcp.networks import NETWORK_KIND, SUBNETWORK_KIND
from ebbtide_rehearsal.cloud.gcp.node_pools import NODE_POOL_KIND
from ebbtide_rehearsal.cloud.gcp.registries import REPOSITORY_KIND, REPOSITORY_MEMBER_KIND
from ebbtide_rehearsal.cloud.gcp.routers import ROUTER_KIND, ROUTER_NAT_KIND
from ebbtide_rehearsal.cloud.gcp.storage import BUCKET_KIND, FILESTORE_KIND

KINDS: Final[Mapping[str, Kind]] = {
    asked.NETWORK: NETWORK_KIND,
    asked.SUBNETWORK: SUBNETWORK_KIND,
    asked.ROUTER: ROUTER_KIND,
    asked.ROUTER_NAT: ROUTER_NAT_KIND,
    asked.CLUSTER: CLUSTER_KIND,
    asked.NODE_POOL: NODE_POOL_KIND,
    asked.ACCOUNT: ACCOUNT_KIND,
    asked.ACCOUNT_MEMBER: ACCOUNT_MEMBER_KIND,
    asked.PROJECT_MEMBER: PROJECT_MEMBER_KIND,
    asked.KEY_MEMBER: KEY_MEMBER_KIND,
    asked.BUCKET: BUCKET_KIND,
    asked.BUCKET_MEMBER: BUCKET_MEMBER_KIND,
    asked.FILESTORE: FILESTORE_KIND,
    asked.REPOSITORY: REPOSITORY_KIND,
    asked.REPOSITORY_MEMBER: REPOSITORY_MEMBER_KIND,
}
"""By token."""
