"""Record teams with Kueue's queues written by hand on an existing cluster, one loop over the teams."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from ebbtide.analysis.recording.record import record  # noqa: E402
from ebbtide.lazy_packages import collect_rarely  # noqa: E402

collect_rarely()  # as the command line does


def program() -> None:
    """Create flavors, a cohort, and for each team its namespace with limits, members' rights and queues."""
    import pulumi  # noqa: PLC0415
    import pulumi_kubernetes as kubernetes  # noqa: PLC0415

    def queueing(
        kind: str, name: str, spec: dict[str, object], *needs: pulumi.Resource, namespace: str | None = None
    ) -> pulumi.Resource:
        return kubernetes.apiextensions.CustomResource(
            f"{kind}-{namespace}-{name}",
            api_version="kueue.x-k8s.io/v1beta2",
            kind=kind,
            metadata={"name": name, "namespace": namespace},
            spec=spec,
            opts=pulumi.ResourceOptions(depends_on=needs),
        )

    pools = [f"pool-{index}" for index in range(int(sys.argv[2]))]
    flavors = [
        queueing("ResourceFlavor", pool, {"nodeLabels": {"cloud.google.com/gke-nodepool": pool}})
        for pool in pools
    ]
    cohort = queueing("Cohort", "train", {}, *flavors)
    for team in (f"team-{index}" for index in range(int(sys.argv[1]))):
        namespace = kubernetes.core.v1.Namespace(team, metadata={"name": team})
        inside = pulumi.ResourceOptions(depends_on=[namespace])
        kubernetes.core.v1.ResourceQuota(
            team, metadata={"namespace": team}, spec={"hard": {"persistentvolumeclaims": "0"}}, opts=inside
        )
        kubernetes.core.v1.LimitRange(
            team,
            metadata={"namespace": team},
            spec={"limits": [{"type": "Container", "max": {"cpu": "7910m", "memory": "29Gi"}}]},
            opts=inside,
        )
        kubernetes.networking.v1.NetworkPolicy(
            team,
            metadata={"namespace": team},
            spec={
                "pod_selector": {},
                "ingress": [{"from_": [{"pod_selector": {}}]}],
                "policy_types": ["Ingress"],
            },
            opts=inside,
        )
        kubernetes.core.v1.ServiceAccount(team, metadata={"namespace": team}, opts=inside)
        kubernetes.rbac.v1.RoleBinding(
            team,
            metadata={"namespace": team},
            role_ref={"api_group": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
            subjects=[{"kind": "User", "name": f"{team}@acme.example"}],
            opts=inside,
        )
        for pool in pools:
            quota = [
                {"name": name, "nominalQuota": amount} for name, amount in (("cpu", "0"), ("memory", "0"))
            ]
            queue = queueing(
                "ClusterQueue",
                f"{team}.{pool}",
                {
                    "cohortName": "train",
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": team}},
                    "resourceGroups": [
                        {
                            "coveredResources": ["cpu", "memory"],
                            "flavors": [{"name": pool, "resources": quota}],
                        }
                    ],
                },
                cohort,
            )
            queueing("LocalQueue", pool, {"clusterQueue": f"{team}.{pool}"}, queue, namespace, namespace=team)


record(program, project="flat", stack="bench")
