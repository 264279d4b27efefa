module ebbtide.dev/tools/kubeflow

go 1.26.0

require (
	github.com/kubeflow/katib v0.19.0
	github.com/kubeflow/trainer/v2 v2.3.0
	sigs.k8s.io/jobset v0.12.0
	sigs.k8s.io/lws v0.8.0
)
