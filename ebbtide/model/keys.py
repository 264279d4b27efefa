"""Keys of one's own, with which a cloud encrypts what is at rest."""

from ebbtide.model.base import Declared, Name


class GkeKeys(Declared):
    """Keys of Cloud KMS. A key that is disabled or destroyed stops what it encrypts."""

    secrets: Name | None = None
    """The key that Secrets are encrypted with in the cluster's database:
    `projects/P/locations/L/keyRings/R/cryptoKeys/K`. Taking it out later decrypts nothing."""
    disks: Name | None = None
    """The key that the nodes' boot disks are encrypted with. Changing it replaces every pool."""
    grant: bool = True
    """True to grant the role Cloud KMS CryptoKey Encrypter/Decrypter on the keys: to GKE's service agent
    for secrets, to Compute Engine's for disks. `false` if the keys' owner has granted it."""


class AksKeys(Declared):
    """Keys of Azure Key Vault. A key that is disabled or deleted stops what it encrypts."""

    secrets: Name | None = None
    """The key that Secrets are encrypted with in the cluster's database: its identifier with the version,
    `https://NAME.vault.azure.net/keys/KEY/VERSION`. The vault has public network access."""
    vault: Name | None = None
    """Resource id of the vault of `secrets`, on which the role Key Vault Crypto User is granted to the
    cluster's identity."""
    disks: Name | None = None
    """Resource id of the disk encryption set that the nodes' disks are encrypted with, on which the cluster's
    identity becomes Reader. It is fixed when the cluster is created. The set's own identity needs the role
    Key Vault Crypto Service Encryption User on its vault."""
    grant: bool = True
    """True to grant these roles to the cluster's identity; `false` if the owner of vault and set has granted
    them."""
