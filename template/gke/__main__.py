"""An ML cluster on GKE, as this stack's configuration declares it."""

import pulumi
from ebbtide.components import program
from ebbtide.components.gke import deploy, provider

config = pulumi.Config("ebbtide")
settings = program.settings(config, "owner", "project", "location")
cluster = program.declared(
    config.require_object("cluster"),
    owner=settings["owner"],
    cloud={
        "kind": "gke",
        "project": settings["project"],
        "location": settings["location"],
    },
)
topology = deploy(cluster, provider("gcp", cluster))
for name, value in program.outputs(cluster, topology).items():
    pulumi.export(name, value)
