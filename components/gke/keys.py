"""Permission of Google's service agents to use declared keys."""

from dataclasses import dataclass

import pulumi
from pulumi_gcp import kms, organizations

from ebbtide.declaration.model.keys import GkeKeys

_ROLE = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
_AGENTS = {"secrets": "container-engine-robot", "disks": "compute-system"}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGrantsArgs:
    """Arguments of `KeyGrants`.

    Attributes:
        keys: the declared keys.
        project: project id of the cluster and of the service agents.
        secrets: whether the stack creates the cluster, and so needs the key that encrypts its Secrets.
    """

    keys: GkeKeys
    project: str
    secrets: bool


class KeyGrants(pulumi.ComponentResource):
    """Cloud KMS CryptoKey Encrypter/Decrypter: for GKE's service agent on the key that encrypts Secrets, and
    for Compute Engine's on the key of disks (GKE docs, encrypting-secrets and using-cmek, 2026)."""

    secrets: tuple[pulumi.Resource, ...]
    """Prerequisites of the cluster."""
    disks: tuple[pulumi.Resource, ...]
    """Prerequisites of every node."""

    def __init__(self, name: str, args: KeyGrantsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:gke:KeyGrants", name, {}, opts)
        project = organizations.get_project_output(
            project_id=args.project, opts=pulumi.InvokeOutputOptions(parent=self)
        )

        def granted(service: str, key: str | None) -> tuple[pulumi.Resource, ...]:
            if key is None:
                return ()
            agent = pulumi.Output.concat(
                "serviceAccount:service-", project.number, f"@{_AGENTS[service]}.iam.gserviceaccount.com"
            )
            grant = kms.CryptoKeyIAMMember(
                f"{name}-{service}",
                crypto_key_id=key,
                role=_ROLE,
                member=agent,
                opts=pulumi.ResourceOptions(parent=self),
            )
            return (grant,)

        self.secrets = granted("secrets", args.keys.secrets if args.secrets else None)
        self.disks = granted("disks", args.keys.disks)
        self.register_outputs({})
