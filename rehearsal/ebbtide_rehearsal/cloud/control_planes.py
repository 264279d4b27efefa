"""Control planes of the fake cloud's clusters, with the controllers of their node pools."""

import base64
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any, Final, Literal, Protocol

from ebbtide_rehearsal.cloud.api_server_proxy import ApiServerProxy
from ebbtide_rehearsal.cloud.clusters import BEHIND, CLUSTER, DISK, Endpoint
from ebbtide_rehearsal.cloud.store import Resource, Store
from ebbtide_rehearsal.control_plane import ControlPlane, ControlPlaneSettings, ControlPlaneTools

_OPEN: Final = frozenset({443, 10250})
"""Ports of a private GKE cluster's nodes that the control plane can reach (GKE docs, private clusters)."""


class Controller(Protocol):
    """Controllers of a cluster's node pools, in a thread."""

    def run(self, ending: threading.Event) -> None:
        """Run until the event."""
        ...


class Controllers(Protocol):
    """Factory of a cluster's controllers."""

    def __call__(self, identity: str, cloud: Literal["gke", "aks"], plane: ControlPlane, /) -> Controller:
        """Return the controllers for a cluster."""
        ...


@dataclass(frozen=True, slots=True)
class _Running:
    plane: ControlPlane
    proxy: ApiServerProxy
    endpoint: Endpoint
    thread: threading.Thread
    ending: threading.Event

    def stop(self) -> None:
        self.ending.set()
        self.thread.join()
        self.proxy.stop()
        self.plane.stop()


class ControlPlanes:
    """Implementation of `Clusters`."""

    def __init__(
        self, directory: Path, trusted: Path, tools: ControlPlaneTools, store: Store, controllers: Controllers
    ) -> None:
        """Manage control planes.

        Args:
            directory: directory of the fake cloud.
            trusted: file of publicly trusted authorities; those of control planes are added, since GKE's DNS
                endpoint has a certificate of a public authority.
            tools: programs of a control plane.
            store: the cloud's state, with clusters and disks that outlive their cluster.
            controllers: factory of the node pools' controllers.
        """
        self._directory, self._trusted, self._tools, self._store = directory, trusted, tools, store
        self._controllers = controllers
        self._running: dict[str, _Running] = {}
        self._lock = threading.Lock()

    def create(self, identity: str, cloud: Literal["gke", "aks"]) -> Endpoint:
        """See `Clusters.create`."""
        with self._lock:
            settings = ControlPlaneSettings(
                name=identity.rpartition("/")[2], cloud=cloud, open_ports=_OPEN if cloud == "gke" else None
            )
            plane = ControlPlane.start(
                self._directory / "clusters" / identity.replace("/", "_"), self._tools, settings
            )
            with self._trusted.open("ab") as bundle:
                bundle.write(plane.plan.certificates.authority.read_bytes())
            write_credential_plugins(self._directory / "bin", plane.plan.identities.person.token)
            ending = threading.Event()
            controller = self._controllers(identity, cloud, plane)
            thread = threading.Thread(
                target=controller.run, args=(ending,), name=f"node pools of {identity}", daemon=True
            )
            authority = base64.b64encode(plane.plan.certificates.authority.read_bytes()).decode()
            proxy = ApiServerProxy(plane, self._store, identity)
            endpoint = Endpoint(proxy.host, authority)
            self._running[identity] = _Running(plane, proxy, endpoint, thread, ending)
            thread.start()
            state: dict[str, Any] = {"kubeconfig": str(plane.plan.kubeconfig), "cloud": cloud}
            self._store.put(Resource(BEHIND, identity, CLUSTER, state=state))
            return endpoint

    def endpoint(self, identity: str) -> Endpoint:
        """See `Clusters.endpoint`."""
        return self._running[identity].endpoint

    def delete(self, identity: str) -> None:
        """See `Clusters.delete`. Disks outlive their cluster and are still billed, as in the clouds."""
        with self._lock:
            running = self._running.pop(identity, None)
            if running is None:
                return
            running.stop()
            for disk in running.plane.disks():
                state = {"size": disk.size, "claim": disk.claim}
                self._store.put(Resource(BEHIND, disk.name, DISK, state=state))
            self._store.remove(BEHIND, identity)

    def memory(self) -> int:
        """Return the memory of all control planes' processes, in bytes."""
        return sum(running.plane.memory() for running in list(self._running.values()))

    def stop(self) -> None:
        """Kill all control planes, as when the machine is switched off."""
        with self._lock:
            for running in self._running.values():
                running.stop()
            self._running.clear()


_TOKEN: Final = re.compile(r"^[A-Za-z0-9._~+/=-]+$")

_CREDENTIAL: Final = """\
cat <<'END'
{
    "kind": "ExecCredential",
    "apiVersion": "client.authentication.k8s.io/v1beta1",
    "spec": {"interactive": false},
    "status": {"token": "$token"}
}
END
"""

_GKE: Final = """\
#!/bin/sh
# In place of gke-gcloud-auth-plugin, in a rehearsal.
for argument; do
    case "$$argument" in
        --version) echo "Kubernetes v0.0.0-rehearsal"; exit 0 ;;
        --use_application_default_credentials|--use_application_default_credentials=*) ;;
        --project=*|--account=*|--impersonate_service_account=*|--configuration=*) ;;
        *) echo "unknown flag: $$argument" >&2; exit 2 ;;
    esac
done
"""

_KUBELOGIN: Final = """\
#!/bin/sh
# In place of kubelogin, in a rehearsal.
fail() { echo "Error: $$1" >&2; exit 1; }
if [ "$$1" = --version ]; then echo "kubelogin version rehearsal"; exit 0; fi
[ "$$1" = get-token ] || fail "unknown command \\"$$1\\" for \\"kubelogin\\""
shift
login=devicecode server= environment=AzurePublicCloud client=$${AZURE_CLIENT_ID-} tenant=$${AZURE_TENANT_ID-}
federated=$${AZURE_FEDERATED_TOKEN_FILE-}
while [ $$# -gt 0 ]; do
    case "$$1" in
        --*=*) name=$${1%%=*} value=$${1#*=} ;;
        -*) [ $$# -gt 1 ] || fail "flag needs an argument: $$1"; name=$$1 value=$$2; shift ;;
        *) fail "unexpected argument $$1" ;;
    esac
    shift
    case "$$name" in
        --login|-l) login=$$value ;;
        --server-id) server=$$value ;;
        --environment|-e) environment=$$value ;;
        --client-id) client=$$value ;;
        --tenant-id|-t) tenant=$$value ;;
        --federated-token-file) federated=$$value ;;
        --token-cache-dir|--authority-host|--timeout) ;;
        *) fail "unknown flag: $$name" ;;
    esac
done
login=$${AAD_LOGIN_METHOD:-$$login}
case "$$login" in
    azurecli) ;;
    workloadidentity)
        [ -n "$$client" ] || fail "client ID is required"
        [ -n "$$tenant" ] || fail "tenant ID is required"
        # A job on GitHub's runners requests its token (kubelogin 0.2.22, provider.go, 2026).
        [ -n "$${ACTIONS_ID_TOKEN_REQUEST_TOKEN-}" ] && [ -n "$${ACTIONS_ID_TOKEN_REQUEST_URL-}" ] ||
            [ -n "$$federated" ] || fail "federated token file is required" ;;
    devicecode|interactive|spn|ropc|msi)
        fail "login $$login wants a person or a secret, and here is neither" ;;
    *) fail "'$$login' is not a supported login method" ;;
esac
[ -n "$$server" ] || fail "server-id is required"
case "$$environment" in
    AzurePublicCloud|AzureUSGovernmentCloud|AzureChinaCloud) ;;
    *) fail "There is no cloud environment matching the name $$environment" ;;
esac
"""


def write_credential_plugins(directory: Path, token: str) -> None:
    """Write fakes of the credential plugins of kubeconfigs, gke-gcloud-auth-plugin and kubelogin, into a
    directory for PATH, readable by the owner only.

    A stack's kubeconfig names them, so that real clients can use it unchanged. They accept and reject the
    same arguments as the real plugins, and return a token of the rehearsal. Sources:
    kubernetes/cloud-provider-gcp cmd/gke-gcloud-auth-plugin/cred.go (2026); Azure/kubelogin
    pkg/internal/token/options.go (2026); kubernetes.io/docs/reference/access-authn-authz/authentication,
    client-go credential plugins.

    Args:
        directory: created if it does not exist.
        token: the API servers' token, which the programs return.

    Raises:
        ValueError: the token has characters that are invalid in a bearer token.
    """
    if not _TOKEN.match(token):
        raise ValueError("A bearer token has letters, digits and -._~+/= alone.")
    directory.mkdir(parents=True, exist_ok=True)
    for name, checks in (("gke-gcloud-auth-plugin", _GKE), ("kubelogin", _KUBELOGIN)):
        program = directory / name
        program.touch(mode=0o700)
        program.chmod(0o700)
        program.write_text(Template(checks + _CREDENTIAL).substitute(token=token))
