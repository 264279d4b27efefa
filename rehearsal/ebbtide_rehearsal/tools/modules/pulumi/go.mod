module ebbtide.dev/tools/pulumi

go 1.26.0

require (
	github.com/pulumi/pulumi/pkg/v3 v3.259.0
	github.com/pulumi/pulumi/sdk/v3 v3.259.0
)
