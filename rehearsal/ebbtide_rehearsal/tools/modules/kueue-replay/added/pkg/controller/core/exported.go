package core

import (
	"k8s.io/utils/clock"
	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
)

// WithConfiguredPodsReady sets when a Workload whose pods are not ready is evicted, as it is configured.
func WithConfiguredPodsReady(cfg *configapi.WaitForPodsReady) Option {
	return WithWaitForPodsReady(waitForPodsReady(cfg))
}

// WithWorkloadClock replaces the real clock of the reconciler of Workloads.
func WithWorkloadClock(clock clock.Clock) Option {
	return func(r *WorkloadReconciler) { r.clock = clock }
}
