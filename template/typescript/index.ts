import * as pulumi from "@pulumi/pulumi";
import * as ebbtide from "@pulumi/ebbtide";

const config = new pulumi.Config();

const cluster = new ebbtide.Cluster("cluster", {
  declaration: {
    owner: config.require("owner"),
    cloud: { kind: "gke", project: config.require("project"), location: config.require("location") },
    lifetime: { hours: 8 }, // omit it for a cluster that stays
    pools: [
      { name: "system", role: "system", machine: "e2-standard-2", nodes: { min: 1, max: 3 } },
      { name: "cpu-spot", machine: "n2-standard-8", capacity: "spot", nodes: { max: 10 } },
    ],
  },
});

export const { clusterName, kubeconfig, placementProfile } = cluster;
