"""Kubeconfig of the cluster, without credentials."""

import pulumi
from pulumi_gcp import container

from ebbtide.declaration.model import Gke

from ..kubernetes import exec_kubeconfig
from .cluster import Cluster

_INSTALL_HINT = "Install gke-gcloud-auth-plugin: gcloud components install gke-gcloud-auth-plugin"


def kubeconfig_text(cluster: str, server: str, ca_certificate: str | None) -> str:
    """Build a kubeconfig, as JSON, whose user gets tokens from gke-gcloud-auth-plugin.

    Args:
        cluster: name of cluster, user and context.
        server: host of the control plane: its DNS endpoint, or its address.
        ca_certificate: in base64; None for the DNS endpoint, whose certificate is public.
    """
    authority = {"certificate-authority-data": ca_certificate} if ca_certificate else {}
    return exec_kubeconfig(
        cluster,
        {"server": f"https://{server}", **authority},
        {
            "command": "gke-gcloud-auth-plugin",
            "installHint": _INSTALL_HINT,
            "provideClusterInfo": True,
        },
    )


def _dns_host(config: container.outputs.ClusterControlPlaneEndpointsConfig) -> str:
    """Return the host of the DNS endpoint, which every cluster has (GKE docs, dns-endpoint, 2026)."""
    endpoint = config.dns_endpoint_config
    return (endpoint.endpoint if endpoint else None) or ""


def own_kubeconfig(cluster: Cluster, *, private: bool) -> pulumi.Output[str]:
    """Return the kubeconfig of a created cluster, a secret: through the DNS endpoint with IAM or, if it is
    private, through its address in the cluster's network."""
    if private:
        resource = cluster.resource
        authority = resource.master_auth.apply(lambda auth: auth.cluster_ca_certificate)
        reached = pulumi.Output.all(cluster.cluster_name, resource.endpoint, authority)
        return pulumi.Output.secret(reached.apply(lambda of: kubeconfig_text(of[0], of[1], of[2])))
    host = cluster.resource.control_plane_endpoints_config.apply(_dns_host)
    parts = pulumi.Output.all(cluster.cluster_name, host)
    return pulumi.Output.secret(parts.apply(lambda of: kubeconfig_text(of[0], of[1], None)))


def existing_kubeconfig(cloud: Gke, name: str) -> pulumi.Output[str]:
    """Return the kubeconfig of an existing cluster, a secret.

    It uses the DNS endpoint if that is public, otherwise the address and certificate.
    """

    def text(cluster: container.GetClusterResult) -> str:
        for config in cluster.control_plane_endpoints_configs:
            for dns in config.dns_endpoint_configs:
                if dns.endpoint and dns.allow_external_traffic:
                    return kubeconfig_text(name, dns.endpoint, None)
        return kubeconfig_text(name, cluster.endpoint, cluster.master_auths[0].cluster_ca_certificate)

    existing = container.get_cluster_output(name=name, location=cloud.location, project=cloud.project)
    return pulumi.Output.secret(existing.apply(text))
