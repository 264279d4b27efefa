module ebbtide.dev/tools/katib

go 1.26.0

require github.com/kubeflow/katib v0.19.0
