module ebbtide.dev/tools/argo

go 1.26.0

require github.com/argoproj/argo-workflows/v4 v4.0.5
