"""An ML cluster on AKS, as this stack's configuration declares it."""

import pulumi
from ebbtide.components import program
from ebbtide.components.aks import deploy, provider

config = pulumi.Config("ebbtide")
settings = program.settings(config, "owner", "subscription", "location")
cluster = program.declared(
    config.require_object("cluster"),
    owner=settings["owner"],
    cloud={
        "kind": "aks",
        "subscription": settings["subscription"],
        "location": settings["location"],
    },
)
topology = deploy(cluster, provider("azure", cluster))
for name, value in program.outputs(cluster, topology).items():
    pulumi.export(name, value)
