"""Command-line arguments of a control plane's programs: pure functions of the plan.

Sources: the command line references of Kubernetes 1.36, etcd 3.6 and kwok 0.8.
"""

from ebbtide_rehearsal.control_plane.certificates import FRONT_PROXY
from ebbtide_rehearsal.control_plane.plan import ControlPlanePlan
from ebbtide_rehearsal.control_plane.ports import LOCALHOST

SERVICES = "10.96.0.0/16"
"""Service addresses, without listeners. See `egress`."""

NODE_ADDRESS = "10.63.0.1"
"""Address of every node, outside the pods' network."""

KUBELET_PORT = 10250

POD_NETWORK = "10.64.0.1/12"
"""Addresses of kwok's running pods."""


def etcd(plan: ControlPlanePlan) -> list[str]:
    """Return the command line of a single-member etcd. Its data may be lost with the machine, so fsync is
    disabled. Clients need a certificate: write access to etcd would allow running pods as the user."""
    url, pair = f"https://{LOCALHOST}:{plan.etcd_port}", plan.certificates.etcd
    peers = f"http://{LOCALHOST}:0"  # a port chosen by the system: there is no other member
    return [
        f"--data-dir={plan.directory / 'etcd'}",
        "--unsafe-no-fsync",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        f"--cert-file={pair.certificate}",
        f"--key-file={pair.key}",
        "--client-cert-auth",
        f"--trusted-ca-file={plan.certificates.authority}",
        "--log-level=warn",
    ]


def api_server(plan: ControlPlanePlan) -> list[str]:
    """Return the command line of the API server, with the default admission plugins.

    Services and aggregated APIs are reached through a proxy, as in a cloud, where the control plane has no
    direct route to the cluster's network.
    """
    issued = plan.certificates
    return [
        f"--etcd-servers=https://{LOCALHOST}:{plan.etcd_port}",
        f"--etcd-cafile={issued.authority}",
        f"--etcd-certfile={issued.etcd.certificate}",
        f"--etcd-keyfile={issued.etcd.key}",
        f"--bind-address={LOCALHOST}",
        f"--advertise-address={LOCALHOST}",
        f"--secure-port={plan.api_port}",
        # No client needs the API server's endpoint, and an endpoint cannot be a loopback address.
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={issued.api_server.certificate}",
        f"--tls-private-key-file={issued.api_server.key}",
        f"--service-account-key-file={issued.accounts_key}",
        f"--service-account-signing-key-file={issued.accounts_key}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-cluster-ip-range={SERVICES}",
        f"--token-auth-file={plan.token_file}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--egress-selector-config-file={plan.egress_file}",
        f"--requestheader-client-ca-file={issued.authority}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={issued.front_proxy.certificate}",
        f"--proxy-client-key-file={issued.front_proxy.key}",
        "--profiling=false",
    ]


def controller_manager(plan: ControlPlanePlan) -> list[str]:
    """Return the command line of the controller manager, without the attach-detach controller: there are no
    machines."""
    return [
        f"--kubeconfig={plan.kubeconfig}",
        # As in a cloud, each controller uses its own service account, which admission recognizes.
        "--use-service-account-credentials",
        f"--service-account-private-key-file={plan.certificates.accounts_key}",
        f"--root-ca-file={plan.certificates.authority}",
        "--controllers=*,-persistentvolume-attach-detach-controller",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        "--profiling=false",
    ]


def scheduler(plan: ControlPlanePlan) -> list[str]:
    """Return the command line of the scheduler."""
    return [
        f"--kubeconfig={plan.kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        "--profiling=false",
    ]


def kwok(plan: ControlPlanePlan) -> list[str]:
    """kwok, the fake kubelet of all nodes."""
    return [
        f"--kubeconfig={plan.kubeconfig}",
        f"--config={plan.stages}",
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=40",
        f"--node-ip={NODE_ADDRESS}",
        f"--node-port={KUBELET_PORT}",
        f"--server-address={plan.kubelet_socket}",
        "--enable-crds=ClusterLogs,ClusterAttach,ClusterExec,ClusterPortForward",
        f"--cidr={POD_NETWORK}",
    ]


def egress(plan: ControlPlanePlan) -> dict[str, object]:
    """Return the API server's egress configuration for the cluster's network (Kubernetes docs, Konnectivity;
    API apiserver.k8s.io/v1beta1)."""
    transport = {"uds": {"udsName": str(plan.egress_socket)}}
    return {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [
            {"name": "cluster", "connection": {"proxyProtocol": "HTTPConnect", "transport": transport}}
        ],
    }
