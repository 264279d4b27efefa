"""An ML cluster on GKE, as this stack's configuration declares it."""

import pulumi
import pulumi_gcp as gcp
from ebbtide.components.gke import Topology

from ebbtide.model import DeclarationError, declare
from ebbtide.placement.derive import profile

settings = pulumi.Config("ebbtide")
project = settings.require("project")
place = {"kind": "gke", "project": project, "location": settings.require("location")}
written = {"owner": settings.require("owner"), "cloud": place, **settings.require_object("cluster")}
try:
    cluster = declare(written, default_name=f"{pulumi.get_project()}-{pulumi.get_stack()}")
except DeclarationError as error:
    raise pulumi.RunError(str(error)) from None

provider = gcp.Provider("gcp", project=project, region=cluster.site.region)
topology = Topology(cluster.name, cluster, pulumi.ResourceOptions(providers=[provider]))

pulumi.export("clusterName", topology.cluster_name)
pulumi.export("kubeconfig", topology.kubeconfig)
pulumi.export("placementProfile", profile(cluster).data())
