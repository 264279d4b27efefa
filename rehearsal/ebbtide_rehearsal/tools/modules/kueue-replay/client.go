package main

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/workload"
)

// change is an update of a Workload that Kueue's event handlers have not seen yet.
type change struct{ old, new *kueue.Workload }

// store is the API server: the objects that Kueue reads, and the Workloads that it writes. Calls that Kueue's
// scheduler and reconcilers do not make reach the nil interface and panic.
type store struct {
	client.Client
	mutex     sync.Mutex
	objects   map[reflect.Type]map[types.NamespacedName]client.Object
	workloads map[types.NamespacedName]*kueue.Workload
	changes   []change
	waiting   map[types.NamespacedName]string
}

func newStore() *store {
	return &store{
		objects:   map[reflect.Type]map[types.NamespacedName]client.Object{},
		workloads: map[types.NamespacedName]*kueue.Workload{},
		waiting:   map[types.NamespacedName]string{},
	}
}

// put stores an object other than a Workload and returns the previous one.
func (s *store) put(object client.Object) client.Object {
	kind := reflect.TypeOf(object)
	if s.objects[kind] == nil {
		s.objects[kind] = map[types.NamespacedName]client.Object{}
	}
	key := client.ObjectKeyFromObject(object)
	previous := s.objects[kind][key]
	s.objects[kind][key] = object
	return previous
}

// copyOf returns a Workload with a status of its own. Kueue changes nothing else in what it has read, but by replacing it.
func copyOf(item *kueue.Workload) *kueue.Workload {
	copied := *item
	item.Status.DeepCopyInto(&copied.Status)
	return &copied
}

// Get reads an object, which shares all but a Workload's status with the stored one.
func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if wanted, ok := into.(*kueue.Workload); ok {
		if found, ok := s.workloads[key]; ok {
			*wanted = *copyOf(found)
			return nil
		}
	} else if found, ok := s.objects[reflect.TypeOf(into)][key]; ok {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found).Elem())
		return nil
	}
	kind := reflect.TypeOf(into).Elem().Name()
	return apierrors.NewNotFound(schema.GroupResource{Group: kueue.SchemeGroupVersion.Group, Resource: kind}, key.Name)
}

// List lists the Workloads of a LocalQueue, which Kueue does when it restarts; it finds nothing else.
func (s *store) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	list, ok := into.(*kueue.WorkloadList)
	if !ok {
		return nil
	}
	var request client.ListOptions
	request.ApplyOptions(options)
	queue, exact := "", false
	if request.FieldSelector != nil {
		queue, exact = request.FieldSelector.RequiresExactMatch(indexer.WorkloadQueueKey)
	}
	for _, item := range s.sorted() {
		if exact && string(item.Spec.QueueName) == queue && item.Namespace == request.Namespace {
			list.Items = append(list.Items, *item.DeepCopy())
		}
	}
	return nil
}

func (s *store) sorted() []*kueue.Workload {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	all := make([]*kueue.Workload, 0, len(s.workloads))
	for _, item := range s.workloads {
		all = append(all, item)
	}
	slices.SortFunc(all, func(a, b *kueue.Workload) int { return cmp.Compare(a.UID, b.UID) })
	return all
}

func (s *store) Status() client.SubResourceWriter { return statusWriter{store: s} }

// Update stores a changed spec: Kueue deactivates Workloads.
func (s *store) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	written := object.(*kueue.Workload).DeepCopy()
	written.Generation++
	s.replace(written)
	return nil
}

type statusWriter struct {
	client.SubResourceWriter
	store *store
}

// Patch replaces the status: Kueue applies it whole (feature gate WorkloadRequestUseMergePatch is off).
func (w statusWriter) Patch(ctx context.Context, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	return w.Update(ctx, object)
}

func (w statusWriter) Update(_ context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	written, ok := object.(*kueue.Workload)
	if !ok {
		return nil // Status of queues and cohorts, which only people read.
	}
	return w.store.setStatus(written)
}

// setStatus stores a Workload's status and completes the caller's object with what it has not sent.
func (s *store) setStatus(written *kueue.Workload) error {
	key := client.ObjectKeyFromObject(written)
	s.mutex.Lock()
	current, ok := s.workloads[key]
	s.mutex.Unlock()
	if !ok {
		return apierrors.NewNotFound(kueue.Resource("workloads"), written.Name)
	}
	next := &kueue.Workload{
		TypeMeta: current.TypeMeta, ObjectMeta: current.ObjectMeta, Spec: current.Spec, Status: *written.Status.DeepCopy(),
	}
	if !s.onlyWaits(key, current, next) {
		s.replace(next)
	}
	written.TypeMeta, written.ObjectMeta, written.Spec = next.TypeMeta, next.ObjectMeta, next.Spec
	return nil
}

func (s *store) replace(next *kueue.Workload) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	key := client.ObjectKeyFromObject(next)
	s.changes = append(s.changes, change{s.workloads[key], next})
	s.workloads[key] = next
}

// onlyWaits recognizes updates that only tell why a Workload still waits: they change no decision, and there is
// one for each Workload and cycle. The reason is kept for the end of the run.
func (s *store) onlyWaits(key types.NamespacedName, current, next *kueue.Workload) bool {
	if workload.HasQuotaReservation(current) || workload.HasQuotaReservation(next) ||
		len(current.Status.AdmissionChecks) != len(next.Status.AdmissionChecks) ||
		!reflect.DeepEqual(current.Status.RequeueState, next.Status.RequeueState) ||
		!slices.Equal(decisive(current), decisive(next)) {
		return false
	}
	if condition := apimeta.FindStatusCondition(next.Status.Conditions, kueue.WorkloadQuotaReserved); condition != nil {
		s.mutex.Lock()
		s.waiting[key] = condition.Message
		s.mutex.Unlock()
	}
	return true
}

type state struct {
	kind, reason string
	status       metav1.ConditionStatus
}

func decisive(item *kueue.Workload) []state {
	var states []state
	for _, condition := range item.Status.Conditions {
		if condition.Type != kueue.WorkloadQuotaReserved {
			states = append(states, state{condition.Type, condition.Reason, condition.Status})
		}
	}
	slices.SortFunc(states, func(a, b state) int { return cmp.Compare(a.kind, b.kind) })
	return states
}

// take returns the updates since the last call. Preemptions are written by several goroutines: sorted by Workload.
func (s *store) take() []change {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	changes := s.changes
	s.changes = nil
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.new.UID, b.new.UID) })
	return changes
}
