package main

import (
	"github.com/pulumi/pulumi-ebbtide/sdk/go/ebbtide"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		cfg := config.New(ctx, "")
		cluster, err := ebbtide.NewCluster(ctx, "cluster", &ebbtide.ClusterArgs{
			Owner: pulumi.String(cfg.Require("owner")),
			Cloud: ebbtide.GkeArgs{
				Kind:     pulumi.String("gke"),
				Project:  pulumi.String(cfg.Require("project")),
				Location: pulumi.String(cfg.Require("location")),
			},
			Lifetime: ebbtide.LifetimeArgs{Hours: pulumi.Int(8)}, // omit it for a cluster that stays
			Pools: ebbtide.PoolArray{
				ebbtide.PoolArgs{
					Name:    pulumi.String("system"),
					Role:    ebbtide.RoleSystem,
					Machine: pulumi.String("e2-standard-2"),
					Nodes:   ebbtide.NodesArgs{Min: pulumi.Int(1), Max: pulumi.Int(3)},
				},
				ebbtide.PoolArgs{
					Name:     pulumi.String("cpu-spot"),
					Machine:  pulumi.String("n2-standard-8"),
					Capacity: pulumi.String("spot"),
					Nodes:    ebbtide.NodesArgs{Max: pulumi.Int(10)},
				},
			},
		})
		if err != nil {
			return err
		}
		ctx.Export("clusterName", cluster.ClusterName)
		ctx.Export("kubeconfig", cluster.Kubeconfig)
		ctx.Export("placementProfile", cluster.PlacementProfile)
		return nil
	})
}
