package main

import (
	"context"
	"reflect"
	"unsafe"

	"k8s.io/apimachinery/pkg/util/sets"
	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/util/heap"
	"sigs.k8s.io/kueue/pkg/util/routine"
	"sigs.k8s.io/kueue/pkg/util/wait"
	"sigs.k8s.io/kueue/pkg/workload"
)

// Kueue's own functions that it does not export (0.19.2); unexported.s lets them have no body here.

//go:linkname schedule sigs.k8s.io/kueue/pkg/scheduler.(*Scheduler).schedule
func schedule(s *scheduler.Scheduler, ctx context.Context) wait.SpeedSignal

//go:linkname setAdmissionRoutineWrapper sigs.k8s.io/kueue/pkg/scheduler.(*Scheduler).setAdmissionRoutineWrapper
func setAdmissionRoutineWrapper(s *scheduler.Scheduler, wrapper routine.Wrapper)

//go:linkname getClusterQueue sigs.k8s.io/kueue/pkg/cache/queue.(*Manager).getClusterQueue
func getClusterQueue(m *qcache.Manager, name kueue.ClusterQueueReference) *qcache.ClusterQueue

//go:linkname requeueWorkloadsCQ sigs.k8s.io/kueue/pkg/cache/queue.requeueWorkloadsCQ
func requeueWorkloadsCQ(ctx context.Context, m *qcache.Manager, name kueue.ClusterQueueReference) int

//go:linkname requeueWorkloadsCohort sigs.k8s.io/kueue/pkg/cache/queue.requeueWorkloadsCohort
func requeueWorkloadsCohort(ctx context.Context, m *qcache.Manager, name kueue.CohortReference) int

//go:linkname handleInadmissibleHash sigs.k8s.io/kueue/pkg/cache/queue.(*ClusterQueue).handleInadmissibleHash
func handleInadmissibleHash(q *qcache.ClusterQueue, hash workload.EquivalenceHash, reason qcache.QuotaReservedReason) int

//go:linkname waitForPodsReady sigs.k8s.io/kueue/pkg/controller/core.waitForPodsReady
func waitForPodsReady(cfg *configapi.WaitForPodsReady) unsafe.Pointer

//go:linkname withWaitForPodsReady sigs.k8s.io/kueue/pkg/controller/core.WithWaitForPodsReady
func withWaitForPodsReady(cfg unsafe.Pointer) core.Option

// field returns a settable private field of a struct.
func field(object any, name string) reflect.Value {
	found := reflect.ValueOf(object).Elem().FieldByName(name)
	return reflect.NewAt(found.Type(), unsafe.Pointer(found.UnsafeAddr())).Elem()
}

// notified takes what the queue manager has asked to requeue: queues without a cohort, and root cohorts.
func notified(requeuer any) ([]kueue.ClusterQueueReference, []kueue.CohortReference) {
	queues := field(requeuer, "cqs").Interface().(sets.Set[kueue.ClusterQueueReference])
	cohorts := field(requeuer, "cohorts").Interface().(sets.Set[kueue.CohortReference])
	if len(queues) == 0 && len(cohorts) == 0 {
		return nil, nil
	}
	takenQueues, takenCohorts := sets.List(queues), sets.List(cohorts)
	queues.Clear()
	cohorts.Clear()
	return takenQueues, takenCohorts
}

// first returns the head of a queue without taking it.
func first(queue *qcache.ClusterQueue) *workload.Info {
	waiting := field(queue, "heap")
	keys := waiting.FieldByName("data").FieldByName("keys")
	if keys.Len() == 0 {
		return nil
	}
	key := workload.Reference(keys.Index(0).String())
	return waiting.Addr().Interface().(*heap.Heap[workload.Info, workload.Reference]).GetByKey(key)
}

// inline calls what Kueue runs in a goroutine at once.
type inline struct{}

func (inline) Run(function func()) { function() }
