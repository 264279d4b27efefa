module ebbtide.dev/tools/pulumi-go

go 1.26.0

require github.com/pulumi/pulumi/sdk/v3 v3.66.0
