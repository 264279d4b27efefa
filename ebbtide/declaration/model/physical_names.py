"""Names of derived resources, each within the limits of its type."""

import re
from dataclasses import dataclass
from hashlib import sha256

_HASH = 6
_ACCOUNT_HASH = 12
_ARM = "Azure resource-name-rules (learn.microsoft.com/azure/azure-resource-manager/management, 2026)"
_GOOGLE = "hashicorp/terraform-provider-google-beta 7.45"

AZURE_RESERVED = (
    "(?i)microsoft|windows|xbox|^login|^("
    "access|app_(code|themes|data|globalresources|localresources|webreferences|browsers)|azure|bing|bizspark"
    "|biztalk|cortana|directx|dotnet|dynamics|excel|exchange|forefront|groove|hololens|hyperv|kinect|lync"
    "|msdn|o365|office|office365|onedrive|onenote|outlook|powerpoint|sharepoint|skype|visio|visualstudio"
    "|web.config)$"
)
"""Reserved words in names of Azure resources with a host name: anywhere, at the start, or as the whole name
(learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-reserved-resource-name, 2023-04-05;
MicrosoftDocs/azure-docs#104539 for `xbox` anywhere)."""
NODE_RESOURCE_GROUP = "MC_{resourceGroupName}_{name}_{location}"
"""AKS's default for a cluster's node resource group."""
LONGEST_NODE_RESOURCE_GROUP = 80
"""Its maximum length, which AKS does not shorten it to (Microsoft's support articles, aks-common-issues-faq:
naming restrictions; 2023-11)."""


@dataclass(frozen=True, slots=True)
class NameLimit:
    """Syntax of the names of a resource type.

    Attributes:
        shortest: minimum length.
        longest: maximum length.
        characters: allowed characters, as a class of a regular expression.
        reserved: a regular expression of forbidden parts; empty for none.
    """

    shortest: int
    longest: int
    characters: str
    source: str
    reserved: str = ""

    def holds(self, name: str) -> bool:
        """Return whether a name is within the limit."""
        within = self.shortest <= len(name) <= self.longest
        allowed = re.fullmatch(f"[{self.characters}]*", name) is not None
        return within and allowed and not (self.reserved and re.search(self.reserved, name))


SERVICE_ACCOUNT = NameLimit(6, 30, "a-z0-9-", f"{_GOOGLE}, services/resourcemanager: account_id")
BUCKET = NameLimit(
    3,
    63,
    "a-z0-9-",
    "Cloud Storage docs, buckets (2026): a name with dots needs a verified domain",
    reserved="^goog|google|g00gle",
)
FILESTORE = NameLimit(1, 63, "a-z0-9-", "Filestore v1 API, instances.create (2026): instanceId")
REPOSITORY = NameLimit(1, 63, "a-z0-9-", "Artifact Registry docs, repositories/create-repos (2026)")
FUTURE_RESERVATION = NameLimit(1, 63, "a-z0-9-", "Compute v1 API, futureReservations.insert (2026): RFC 1035")
ROUTER_NAT = NameLimit(
    2, 63, "a-z0-9-", f"{_GOOGLE}, services/compute, router_nat: ValidateRFC1035Name(2, 63)"
)
IDENTITY = NameLimit(3, 128, "A-Za-z0-9_-", f"{_ARM}, Microsoft.ManagedIdentity")
FEDERATED_CREDENTIAL = NameLimit(
    3, 120, "A-Za-z0-9_-", "azure-rest-api-specs, Microsoft.ManagedIdentity (2024-11)"
)
CAPACITY_RESERVATION_GROUP = NameLimit(
    1,
    64,
    "A-Za-z0-9_.-",
    "hashicorp/terraform-provider-azurerm@69697b7f, validate/capacity_reservation_group_name.go (2026-08)",
)
RESOURCE_GROUP = NameLimit(1, 90, "A-Za-z0-9_.()-", f"{_ARM}, Microsoft.Resources")
DNS_PREFIX = NameLimit(
    1,
    54,
    "A-Za-z0-9-",
    "azure-rest-api-specs, Microsoft.ContainerService: dnsPrefix",
    reserved=AZURE_RESERVED,
)
VIRTUAL_NETWORK = NameLimit(2, 64, "A-Za-z0-9_.-", f"{_ARM}, Microsoft.Network")
WORKSPACE = NameLimit(4, 63, "A-Za-z0-9-", f"{_ARM}, Microsoft.OperationalInsights", reserved=AZURE_RESERVED)
MONITOR_WORKSPACE = NameLimit(
    4,
    44,
    "A-Za-z0-9-",
    "azure-rest-api-specs, Microsoft.Monitor 2023-04-03: azureMonitorWorkspaceName",
    reserved=AZURE_RESERVED,
)
DATA_COLLECTION = NameLimit(
    3,
    44,
    "A-Za-z0-9-",
    "azure-monitor docs, prometheus-metrics-enable (2026): 44 characters for an endpoint",
    reserved=AZURE_RESERVED,
)
STORAGE_ACCOUNT = NameLimit(3, 24, "a-z0-9", f"{_ARM}, Microsoft.Storage", reserved=AZURE_RESERVED)
CONTAINER_REGISTRY = NameLimit(
    5, 50, "A-Za-z0-9", f"{_ARM}, Microsoft.ContainerRegistry", reserved=AZURE_RESERVED
)
SUBDOMAIN = NameLimit(
    1, 253, "a-z0-9-", "kubernetes.io, overview/working-with-objects/names (2026): DNS subdomain"
)


def fitting(name: str, limit: NameLimit) -> str:
    """Return a name within a limit: the name itself, or a prefix with a hash of the whole name.

    With a prefix alone, two clusters of one project could collide.
    """
    if limit.holds(name):
        return name
    digest = sha256(name.encode()).hexdigest()[:_HASH]
    spelled = name if "A-Z" in limit.characters else name.lower()
    allowed = re.sub(f"[^{limit.characters}]", "-", spelled)
    allowed = _without(limit.reserved, allowed)
    return f"{allowed[: limit.longest - _HASH - 1].rstrip('-')}-{digest}"


def _without(reserved: str, name: str) -> str:
    """Return a name with the first letter of each reserved word in its place."""
    while reserved and (word := re.search(reserved, name)):
        name = name[: word.start() + 1] + name[word.end() :]
    return name


def account_name(*parts: str) -> str:
    """Return a storage account name: at most 24 lower-case letters and digits, ending in a hash of all parts,
    since it must be globally unique."""
    text = "-".join(parts)
    letters = "".join(letter for letter in parts[-1].lower() if letter.isascii() and letter.isalnum())
    letters = _without(STORAGE_ACCOUNT.reserved, letters)
    digits = STORAGE_ACCOUNT.longest - _ACCOUNT_HASH
    return f"{letters[:_ACCOUNT_HASH]}{sha256(text.encode()).hexdigest()[:digits]}"
