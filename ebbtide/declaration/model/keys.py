"""Customer-managed keys for encryption at rest."""

from ebbtide.declaration.model.base import Declared, Name


class GkeKeys(Declared):
    """Cloud KMS keys. Data encrypted with a disabled or destroyed key becomes unavailable."""

    secrets: Name | None = None
    """Key for the Secrets in the cluster's database:
    `projects/P/locations/L/keyRings/R/cryptoKeys/K`. Removing it later decrypts nothing."""
    disks: Name | None = None
    """Key for the nodes' boot disks. Changing it replaces every pool."""
    grant: bool = True
    """True to grant the role Cloud KMS CryptoKey Encrypter/Decrypter on the keys: to GKE's service agent
    for secrets, to Compute Engine's for disks. `false` if the keys' owner has granted it."""


class AksKeys(Declared):
    """Azure Key Vault keys. Data encrypted with a disabled or deleted key becomes unavailable."""

    secrets: Name | None = None
    """Key for the Secrets in the cluster's database: its identifier with the version,
    `https://NAME.vault.azure.net/keys/KEY/VERSION`. The vault must allow public network access."""
    vault: Name | None = None
    """Resource id of the vault of `secrets`, on which the role Key Vault Crypto User is granted to the
    cluster's identity."""
    disks: Name | None = None
    """Resource id of the disk encryption set for the nodes' disks, on which the cluster's identity is granted
    Reader. Fixed when the cluster is created. The set's own identity needs the role Key Vault Crypto Service
    Encryption User on its vault."""
    grant: bool = True
    """True to grant these roles to the cluster's identity; `false` if the owner of the vault and the set has
    granted them."""
