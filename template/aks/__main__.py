"""An ML cluster on AKS, as this stack's configuration declares it."""

import pulumi
from ebbtide.components import program
from ebbtide.components.aks import deploy, provider

settings = pulumi.Config("ebbtide")
cluster = program.declared(
    settings.require_object("cluster"),
    owner=settings.require("owner"),
    cloud={
        "kind": "aks",
        "subscription": settings.require("subscription"),
        "location": settings.require("location"),
    },
)
topology = deploy(cluster, provider("azure", cluster))
for name, value in program.outputs(cluster, topology).items():
    pulumi.export(name, value)
