module ebbtide.dev/tools/pulumi-yaml

go 1.26.0

require github.com/pulumi/pulumi-yaml v1.32.0
