"""Azure: stop and start an AKS cluster. Its state is preserved for 12 months; disks and addresses are billed
while it is stopped.

Source: azure-rest-api-specs, Microsoft.ContainerService 2025-09-01, `ManagedClusters_Stop` and
`ManagedClusters_Start`; azure-aks-docs, start-stop-cluster (2026).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, cast

from azure.core import PipelineClient
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.core.pipeline.policies import BearerTokenCredentialPolicy, RetryPolicy
from azure.core.rest import HttpRequest
from azure.identity import CredentialUnavailableError

from ebbtide.clients.clouds.azure import LOGIN, management_endpoint
from ebbtide.clients.clouds.errors import CloudApiError, CredentialsError
from ebbtide.clients.clouds.http import refusal

_VERSION: Final = "2025-09-01"
_STEP: Final = 10.0  # seconds between two requests for the cluster's state
_TIMEOUT: Final = 3600.0
_ENDED: Final = frozenset({"Succeeded", "Failed", "Canceled"})
"""Terminal values of `provisioningState` (ARM, asynchronous operations)."""


@dataclass(frozen=True, slots=True)
class AzurePower:
    """Power state of an AKS cluster.

    Attributes:
        cluster: its resource id.
    """

    cluster: str
    credential: TokenCredential
    endpoint: str = field(default_factory=management_endpoint)

    def refusal(self) -> str:
        """Return the reason why the cluster can never be stopped; empty if it can."""
        properties = self._properties()
        if _part(properties, "nodeProvisioningProfile").get("mode") == "Auto":
            return "It has node auto-provisioning, and AKS cannot stop such a cluster (Azure/AKS#5356)."
        sets = {pool.get("type", "VirtualMachineScaleSets") for pool in properties["agentPoolProfiles"]}
        if sets != {"VirtualMachineScaleSets"}:
            return "It has node pools without virtual machine scale sets, and AKS cannot stop such a cluster."
        return ""

    def is_stopped(self) -> bool:
        """Return whether the cluster is stopped."""
        return _power(self._properties()) == "Stopped"

    def stop(self, on_step: Callable[[str], None]) -> None:
        """Stop the cluster, including its control plane."""
        self._change("stop", "Stopped", on_step)

    def start(self, on_step: Callable[[str], None]) -> None:
        """Start the cluster."""
        self._change("start", "Running", on_step)

    def _change(self, action: str, desired: str, on_step: Callable[[str], None]) -> None:
        """Change the power state and wait. A change in progress, for example of an interrupted command, is
        waited for first.
        """
        properties = self._settled()
        if _power(properties) == desired and properties.get("provisioningState") == "Succeeded":
            return
        on_step(f"{action} the AKS cluster")
        self._call("POST", f"/{action}")
        properties = self._settled()
        if _power(properties) != desired or properties.get("provisioningState") != "Succeeded":
            raise CloudApiError(
                f"AKS did not {action} the cluster: its state is {properties.get('provisioningState')}, "
                f"{_power(properties)}. Run this again, or look at its activity log."
            )

    def _settled(self) -> dict[str, Any]:
        """Return the cluster's properties once no operation is in progress."""
        end = time.monotonic() + _TIMEOUT
        while (properties := self._properties()).get("provisioningState") not in _ENDED:
            if time.monotonic() > end:
                raise CloudApiError(
                    f"AKS is still busy after an hour ({properties.get('provisioningState')}). Run this "
                    "again to continue."
                )
            time.sleep(_STEP)
        return properties

    def _properties(self) -> dict[str, Any]:
        return self._call("GET")["properties"]

    def _call(self, method: str, action: str = "") -> dict[str, Any]:
        """Send a request and return the response's document; empty without one."""
        policy = cast("Any", BearerTokenCredentialPolicy)(self.credential, f"{self.endpoint}/.default")
        url, version = f"{self.endpoint}{self.cluster}{action}", {"api-version": _VERSION}
        client = cast("Any", PipelineClient)(self.endpoint, policies=[RetryPolicy(), policy])
        try:
            with client:
                response = client.send_request(HttpRequest(method, url, params=version))
        except (CredentialUnavailableError, ClientAuthenticationError) as error:
            raise CredentialsError(
                f"There are no valid credentials for Azure. Log in with `{LOGIN}`."
            ) from error
        except AzureError as error:
            raise CloudApiError("Azure cannot be reached. Check the network, then run this again.") from error
        document: dict[str, Any] = response.json() if response.content else {}
        if response.status_code < HTTPStatus.BAD_REQUEST:
            return document
        advice = {
            403: "Ask an owner for the role Azure Kubernetes Service Contributor.",
            404: "Check with `pulumi refresh` that the cluster exists.",
        }
        message = str(_part(document, "error").get("message", ""))
        raise CloudApiError(
            refusal(self.endpoint.removeprefix("https://"), response.status_code, message, advice)
        )


def _power(properties: dict[str, Any]) -> str:
    return str(_part(properties, "powerState").get("code") or "Running")


def _part(document: dict[str, Any], name: str) -> dict[str, Any]:
    return document.get(name) or {}
