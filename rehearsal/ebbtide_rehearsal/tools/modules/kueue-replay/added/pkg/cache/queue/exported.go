package queue

import (
	"context"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Requeuer collects what the queue manager asks to requeue.
type Requeuer = testInadmissibleWorkloadRequeuer

// Take returns and forgets what was asked for: queues without a cohort, and root cohorts.
func (r *testInadmissibleWorkloadRequeuer) Take() ([]kueue.ClusterQueueReference, []kueue.CohortReference) {
	queues, cohorts := sets.List(r.cqs), sets.List(r.cohorts)
	r.cqs.Clear()
	r.cohorts.Clear()
	return queues, cohorts
}

// ClusterQueue returns a queue; nil if there is none.
func (m *Manager) ClusterQueue(name kueue.ClusterQueueReference) *ClusterQueue {
	return m.getClusterQueue(name)
}

// RequeueClusterQueue retries the inadmissible Workloads of a queue.
func (m *Manager) RequeueClusterQueue(ctx context.Context, name kueue.ClusterQueueReference) {
	requeueWorkloadsCQ(ctx, m, name)
}

// RequeueCohort retries the inadmissible Workloads of the queues below a root cohort.
func (m *Manager) RequeueCohort(ctx context.Context, name kueue.CohortReference) {
	requeueWorkloadsCohort(ctx, m, name)
}

// SetClock replaces the real clock, which every new queue has.
func (c *ClusterQueue) SetClock(clock clock.Clock) { c.clock = clock }
