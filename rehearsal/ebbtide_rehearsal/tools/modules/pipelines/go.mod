module ebbtide.dev/tools/pipelines

go 1.26.0

require github.com/kubeflow/pipelines v0.0.0-20260709152847-4a3592cb2dd0
