"""Azure resources of a cluster's teams: the identity, bucket, volume and registry of each."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_azure_native import (
    authorization,
    containerregistry,
    containerservice,
    managedidentity,
    resources,
    storage,
)

from ebbtide.declaration.model.cluster import Cluster as Declaration
from ebbtide.declaration.model.physical_names import (
    FEDERATED_CREDENTIAL,
    IDENTITY,
    RESOURCE_GROUP,
    account_name,
    fitting,
)
from ebbtide.declaration.model.tenancy import Team
from ebbtide.placement.derive import (
    ACCOUNT,
    BUCKET_DRIVERS,
    CONTAINER,
    bucket_name,
    keeps_registry,
    registry_name,
)
from ebbtide.values.cloud_kind import CloudKind

from ..addons.teams import (
    MOUNT_NAMESPACE,
    CreateTeamResources,
    SharedDisk,
    TeamResources,
    adopted_accounts,
    fixed_registry_key,
    registry_inputs,
    volume_name,
)
from ..topology import Labels, of_team
from .identity import (
    ACR_PULL,
    ACR_PUSH,
    STORAGE_BLOB_DATA_CONTRIBUTOR,
    STORAGE_FILE_DATA_PRIVILEGED_CONTRIBUTOR,
    VaultKey,
    VaultKeyArgs,
    assign_to_members,
    role_definition,
)
from .topology import Topology

_FILES_GIB = 100
_BUCKET_SAYS_GIB = 1024


def _existing(
    declaration: Declaration, topology: Topology
) -> pulumi.Output[containerservice.GetManagedClusterResult]:
    """Return the existing cluster, as it is read in every preview."""
    return containerservice.get_managed_cluster_output(
        resource_name=declaration.physical_name,
        resource_group_name=topology.resource_group,
        opts=pulumi.InvokeOutputOptions(parent=topology),
    )


def _issuer(declaration: Declaration, topology: Topology) -> pulumi.Output[str]:
    """Return the URL of the cluster's OIDC issuer, which an existing cluster must have."""
    cluster = topology.cluster.resource if topology.cluster else _existing(declaration, topology)
    return cluster.oidc_issuer_profile.apply(lambda oidc: (oidc.issuer_url if oidc else None) or "")


def _kubelet(declaration: Declaration, topology: Topology) -> pulumi.Output[str]:
    """Return the object id of the identity with which the cluster's nodes pull images."""
    if topology.cluster is not None:
        # AKS gives every created cluster such an identity; only a unit test's mocks return none.
        return topology.cluster.resource.identity_profile.apply(
            lambda profile: _object_id(profile) if profile else ""
        )
    return _existing(declaration, topology).identity_profile.apply(_object_id)


def _object_id(profile: Mapping[str, Any] | None) -> str:
    identity = (profile or {}).get("kubeletidentity")
    object_id = identity.object_id if identity is not None else None
    if not object_id:
        raise pulumi.RunError(
            "The AKS cluster has no kubelet identity, so its nodes could not pull images from a registry. "
            "Enable a managed identity with `az aks update --enable-managed-identity`, or remove "
            "teams[].registry."
        )
    return str(object_id)


def team_resources(topology: Topology, declaration: Declaration) -> CreateTeamResources:
    """Return a function that creates a team's identity, bucket and volume in the topology."""

    def create(team: Team) -> TeamResources:
        if team.registry is not None:
            Registry(f"{declaration.name}-team-{team.stored_as}-images", team, topology, declaration)
        return Tenant(f"{declaration.name}-team-{team.name}", team, topology, declaration).resources

    return create


class Tenant(pulumi.ComponentResource):
    """An identity for the team's pods, by workload identity federation, without any secret.

    It may only use the team's bucket. Storage and its grants have the storage's name, so that a renamed
    team keeps them: Azure rejects a second assignment of a role to the same identity. Sources:
    azure-aks-docs, workload-identity-overview and azure-blob-csi (2026); blob-csi-driver,
    docs/driver-parameters.
    """

    resources: TeamResources

    def __init__(self, name: str, team: Team, topology: Topology, declaration: Declaration) -> None:
        super().__init__("ebbtide:aks:Tenant", name, {}, pulumi.ResourceOptions(parent=topology))
        self._team, self._topology, self._declaration = team, topology, declaration
        self._labels, cloud = dict(of_team(topology.labels, team.name)), topology.cloud
        stored = f"{declaration.name}-team-{team.stored_as}"
        identity = managedidentity.UserAssignedIdentity(
            f"{name}-identity",
            resource_name_=fitting(f"{declaration.name}-team-{team.name}", IDENTITY),
            resource_group_name=topology.resource_group,
            location=cloud.location,
            tags=self._labels,
            opts=pulumi.ResourceOptions(parent=self),
        )
        adopted, issuer = adopted_accounts(team), _issuer(declaration, topology)
        grants: list[pulumi.Resource] = []
        for role, credential, account in (
            ("workload", team.name, ACCOUNT),
            *((item, f"{team.name}-{item}", item) for item in adopted),
        ):
            grants.append(
                managedidentity.FederatedIdentityCredential(
                    f"{name}-{role}",
                    federated_identity_credential_resource_name=fitting(credential, FEDERATED_CREDENTIAL),
                    resource_name_=identity.name,
                    resource_group_name=topology.resource_group,
                    issuer=issuer,
                    subject=f"system:serviceaccount:{team.namespace_name}:{account}",
                    audiences=["api://AzureADTokenExchange"],
                    # Azure rejects two concurrent ones on one identity (entra/workload-id, workload identity
                    # federation considerations, 2026).
                    opts=pulumi.ResourceOptions(parent=self, depends_on=grants[-1:]),
                )
            )
        bucket = self._bucket(stored) if team.has_bucket else None
        if bucket is not None:
            grants.append(
                authorization.RoleAssignment(
                    f"{stored}-writes",
                    scope=bucket.id,
                    role_definition_id=role_definition(cloud.subscription, STORAGE_BLOB_DATA_CONTRIBUTOR),
                    principal_id=identity.principal_id,
                    principal_type="ServicePrincipal",
                    opts=pulumi.ResourceOptions(parent=self),
                )
            )
            self._let_in(f"{stored}-bucket", bucket.id, STORAGE_BLOB_DATA_CONTRIBUTOR)
        self.resources = TeamResources(
            annotations={"azure.workload.identity/client-id": identity.client_id},
            bucket=pulumi.Output.format("abfss://{0}@{1}.dfs.core.windows.net", CONTAINER, bucket.name)
            if bucket
            else None,
            disk=self._disk(stored, bucket, identity.client_id),
            grants=tuple(grants),
            adopted=adopted,
        )
        self.register_outputs({"client_id": identity.client_id})

    def _let_in(self, name: str, account: pulumi.Input[str], role: str) -> None:
        """Let members read and write the data of the team's storage account."""
        subscription = self._topology.cloud.subscription
        assign_to_members(
            name, self._team.members, subscription=subscription, scope=account, role=role, parent=self
        )

    def _bucket(self, name: str) -> storage.StorageAccount:
        """Create a private storage account with one container; keys are disabled, so access requires an
        identity.

        Key and bucket are in the group that `_group` returns.
        """
        team, topology, cloud = self._team, self._topology, self._topology.cloud
        declared = team.bucket.keep if team.bucket else None
        keep = not self._declaration.is_ephemeral if declared is None else declared
        opts = pulumi.ResourceOptions(parent=self, retain_on_delete=keep)
        stored = f"{self._declaration.name}-{team.stored_as}"
        group = _group(name, f"{stored}-kept", topology, self._labels, opts)
        called, key = f"{stored}-bucket-key", cloud.keys.buckets
        vault_key = _vault_key(f"{name}-bucket-key", called, key, group, topology, self._labels, opts)
        account = storage.StorageAccount(
            f"{name}-bucket",
            account_name=bucket_name(self._declaration, team),
            resource_group_name=group,
            location=cloud.location,
            kind="StorageV2",
            sku={"name": "Standard_LRS"},
            is_hns_enabled=True,
            allow_blob_public_access=False,
            allow_shared_key_access=False,
            minimum_tls_version="TLS1_2",
            enable_https_traffic_only=True,
            identity=_acting_as(vault_key) if vault_key else None,
            encryption=_encrypted_with(vault_key) if vault_key else None,
            tags=self._labels,
            opts=pulumi.ResourceOptions.merge(
                opts, pulumi.ResourceOptions(depends_on=vault_key.grants if vault_key else ())
            ),
        )
        storage.BlobContainer(
            f"{name}-container",
            container_name=CONTAINER,
            account_name=account.name,
            resource_group_name=group,
            opts=opts,
        )
        if cloud.resources.blob_service:
            storage.BlobServiceProperties(
                f"{name}-blobs",
                account_name=account.name,
                resource_group_name=group,
                blob_services_name="default",
                opts=opts,
            )
        if cloud.resources.management_policy:
            storage.ManagementPolicy(
                f"{name}-policy",
                account_name=account.name,
                resource_group_name=group,
                management_policy_name="default",
                policy={"rules": []},
                opts=opts,
            )
        return account

    def _disk(
        self, name: str, bucket: storage.StorageAccount | None, client_id: pulumi.Input[str]
    ) -> SharedDisk | None:
        volume = self._team.volume
        if volume is None:
            return None
        if bucket is not None and volume.kind == "bucket":
            return SharedDisk(
                source={
                    "csi": {
                        "driver": BUCKET_DRIVERS[CloudKind.AKS],
                        "volumeHandle": pulumi.Output.format("{0}#{1}", bucket.name, CONTAINER),
                        "volumeAttributes": {
                            "protocol": "fuse2",
                            "resourceGroup": self._topology.resource_group,
                            "storageAccount": bucket.name,
                            "containerName": CONTAINER,
                            "clientID": client_id,
                            "mountWithWorkloadIdentityToken": "true",
                            "isHnsEnabled": "true",
                        },
                    }
                },
                size_gib=_BUCKET_SAYS_GIB,
                # FUSE admits no other user than root by default (azure-aks-docs, azure-blob-csi, 2026).
                mount_options=("-o allow_other",),
            )
        return self._files(name, volume.size_gib or _FILES_GIB)

    def _files(self, name: str, size: int) -> SharedDisk:
        """Create a premium share of Azure Files, mounted with the account's key, which is kept in a Secret.

        The driver supports mounting with a pod's identity only from 1.35.0 on. With the nodes' identity,
        which 1.34.0 supports, pods of any team could read every share (kubernetes-sigs/azurefile-csi-driver,
        docs, workload-identity-static-pv-mount and managed-identity-mount, 2026).
        """
        team, topology, cluster = self._team, self._topology, self._declaration.name
        opts = pulumi.ResourceOptions(parent=self)
        account = storage.StorageAccount(
            f"{name}-files",
            account_name=account_name(topology.cloud.subscription, cluster, f"{team.stored_as}-files"),
            resource_group_name=topology.resource_group,
            location=topology.cloud.location,
            kind="FileStorage",
            sku={"name": "Premium_LRS"},
            allow_blob_public_access=False,
            minimum_tls_version="TLS1_2",
            enable_https_traffic_only=True,
            network_rule_set=_closed(topology.own_subnet),
            tags=self._labels,
            opts=opts,
        )
        storage.FileShare(
            f"{name}-share",
            share_name=CONTAINER,
            account_name=account.name,
            resource_group_name=topology.resource_group,
            share_quota=size,
            opts=opts,
        )
        self._let_in(f"{name}-files", account.id, STORAGE_FILE_DATA_PRIVILEGED_CONTRIBUTOR)
        keys = storage.list_storage_account_keys_output(
            account_name=account.name,
            resource_group_name=topology.resource_group,
            opts=pulumi.InvokeOutputOptions(parent=self),
        )
        key = pulumi.Output.secret(keys.apply(lambda account: account.keys[0].value))
        return SharedDisk(
            source={
                "csi": {
                    "driver": "file.csi.azure.com",
                    "volumeHandle": pulumi.Output.format("{0}#{1}", account.name, CONTAINER),
                    "volumeAttributes": {"shareName": CONTAINER, "storageAccount": account.name},
                    "nodeStageSecretRef": {
                        "name": volume_name(cluster, team),
                        "namespace": MOUNT_NAMESPACE,
                    },
                }
            },
            size_gib=size,
            mount_options=("dir_mode=0777", "file_mode=0777", "mfsymlinks", "cache=strict", "nosharesock"),
            credentials={"azurestorageaccountname": account.name, "azurestorageaccountkey": key},
        )


def _vault_key(
    name: str,
    called: str,
    key: str | None,
    group: pulumi.Input[str],
    topology: Topology,
    labels: Labels,
    opts: pulumi.ResourceOptions,
) -> VaultKey | None:
    """Create the identity, called so in its group, that uses a declared key, with the options of the stored
    data; return None without one."""
    if not key:
        return None
    own = VaultKeyArgs(
        name=fitting(called, IDENTITY),
        resource_group=group,
        location=topology.cloud.location,
        subscription=topology.cloud.subscription,
        key=key,
        vault=topology.cloud.keys.vault or "",
        keep=bool(opts.retain_on_delete),
        labels=labels,
    )
    return VaultKey(name, own, pulumi.ResourceOptions(parent=opts.parent))


def _acting_as(key: VaultKey) -> storage.IdentityArgsDict:
    return {"type": storage.IdentityType.USER_ASSIGNED, "user_assigned_identities": [key.identity]}


def _encrypted_with(key: VaultKey) -> storage.EncryptionArgsDict:
    vault, _, rest = key.key.partition("/keys/")
    name, _, version = rest.partition("/")
    used: storage.KeyVaultPropertiesArgsDict = {"key_vault_uri": vault, "key_name": name}
    if version:
        used["key_version"] = version
    return {
        "key_source": storage.KeySource.MICROSOFT_KEYVAULT,
        "key_vault_properties": used,
        "encryption_identity": {"encryption_user_assigned_identity": key.identity},
    }


def _group(
    name: str, called: str, topology: Topology, labels: Labels, opts: pulumi.ResourceOptions
) -> pulumi.Input[str]:
    """Return the resource group of stored data. What is kept has a separate one, which is also kept, unless
    the cluster's is: deleting a group deletes all of its contents, including resources that Pulumi retains.
    Source: Azure Resource Manager docs, delete resource groups (2026).
    """
    if not opts.retain_on_delete or not topology.cloud.create_resource_group:
        return topology.resource_group
    return resources.ResourceGroup(
        f"{name}-kept",
        resource_group_name=fitting(called, RESOURCE_GROUP),
        location=topology.cloud.location,
        tags=labels,
        opts=opts,
    ).name


def _closed(subnet: pulumi.Input[str] | None) -> storage.NetworkRuleSetArgsDict | None:
    """Return the network rules of a storage account: only nodes and Azure's own management have access."""
    if subnet is None:
        return None
    rule: storage.VirtualNetworkRuleArgsDict = {"virtual_network_resource_id": subnet}
    return {
        "default_action": storage.DefaultAction.DENY,
        "bypass": storage.Bypass.NONE,
        "virtual_network_rules": [rule],
    }


class Registry(pulumi.ComponentResource):
    """A container registry without an admin account; its grants are limited to the registry.

    Its resource group is that of `_group`. Azure assigns roles only to object ids: a member declared by user
    name cannot push. Sources: azure-container-registry docs, container-registry-skus and
    container-registry-rbac-built-in-roles-overview (2026); azure-aks-docs,
    cluster-container-registry-integration (2026).
    """

    def __init__(self, name: str, team: Team, topology: Topology, declaration: Declaration) -> None:
        cloud, labels = topology.cloud, dict(of_team(topology.labels, team.name))
        fixed = pulumi.ResourceOptions.merge(
            pulumi.ResourceOptions(parent=topology), fixed_registry_key(CloudKind.AKS)
        )
        inputs = registry_inputs(cloud.keys.registries)
        super().__init__("ebbtide:aks:Registry", name, inputs, fixed)
        stays = pulumi.ResourceOptions(parent=self, retain_on_delete=keeps_registry(declaration, team))
        group = _group(name, f"{declaration.name}-{team.stored_as}-images-kept", topology, labels, stays)
        called, key = f"{registry_name(declaration, team)}-key", cloud.keys.registries
        vault_key = _vault_key(f"{name}-key", called, key, group, topology, labels, stays)
        encrypted: dict[str, Any] = {"sku": {"name": "Basic"}}
        if vault_key is not None:
            encrypted = {
                "sku": {"name": "Premium"},
                "identity": {
                    "type": "UserAssigned",
                    "user_assigned_identities": vault_key.identity.apply(lambda identity: {identity: {}}),
                },
                "encryption": {
                    "status": containerregistry.EncryptionStatus.ENABLED,
                    "key_vault_properties": {
                        "identity": vault_key.client_id,
                        "key_identifier": vault_key.key,
                    },
                },
            }
        registry = containerregistry.Registry(
            f"{name}-registry",
            registry_name=registry_name(declaration, team),
            resource_group_name=group,
            location=cloud.location,
            admin_user_enabled=False,
            tags=labels,
            opts=pulumi.ResourceOptions.merge(
                stays, pulumi.ResourceOptions(depends_on=vault_key.grants if vault_key else ())
            ),
            **encrypted,
        )
        inside = pulumi.ResourceOptions(parent=self)
        pull = role_definition(cloud.subscription, ACR_PULL)
        authorization.RoleAssignment(
            f"{name}-pull",
            scope=registry.id,
            role_definition_id=pull,
            principal_id=_kubelet(declaration, topology),
            principal_type="ServicePrincipal",
            opts=inside,
        )
        assign_to_members(
            f"{name}-push",
            team.members,
            subscription=cloud.subscription,
            scope=registry.id,
            role=ACR_PUSH,
            parent=self,
        )
        self.register_outputs({})
