package main

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
	workloadevict "sigs.k8s.io/kueue/pkg/workload/evict"
	workloadfinish "sigs.k8s.io/kueue/pkg/workload/finish"
	workloadpatching "sigs.k8s.io/kueue/pkg/workload/patching"
)

// job is a submitted job; its Workload exists once it is the first of its class.
type job struct {
	id        string
	key       types.NamespacedName
	class     *class
	at        time.Duration
	number    int64
	evictions int
	evicted   time.Duration
}

// class is the jobs that Kueue cannot tell apart: it sees the first of those that wait, and the next one once
// that has quota. Each release of quota would retry all of them. Those to come are among those that wait: they change
// nothing as long as there is a first one. The reason is why the last one waited.
type class struct {
	queue    kueue.LocalQueueName
	priority int32
	podSets  []kueue.PodSet
	waiting  []*job
	head     *job
	reason   string
}

func (r *replay) submit(item action) error {
	if _, ok := r.jobs[item.Job]; ok {
		return fmt.Errorf("the job exists")
	}
	namespace, queue, _ := strings.Cut(item.Queue, "/")
	identity, err := json.Marshal([]any{item.Queue, item.Priority, item.PodSets})
	if err != nil {
		return err
	}
	members, ok := r.classes[string(identity)]
	if !ok {
		members = &class{kueue.LocalQueueName(queue), item.Priority, podSets(item.PodSets), nil, nil, ""}
		r.classes[string(identity)] = members
	}
	r.number++
	created := &job{
		id: item.Job, class: members, at: duration(item.At), number: r.number,
		key: types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("w%012d", r.number)},
	}
	r.jobs[item.Job] = created
	members.waiting = append(members.waiting, created)
	if members.head == nil && len(members.waiting) == 1 {
		r.await(members)
	}
	return nil
}

// await shows the first job that waits when its time comes.
func (r *replay) await(members *class) {
	next := members.waiting[0]
	heap.Push(&r.heap, moment{max(next.at, r.now), next.number, func() error { return r.show(members) }, nil})
}

func podSets(items []podSet) []kueue.PodSet {
	converted := make([]kueue.PodSet, len(items))
	for number, item := range items {
		container := corev1.Container{Name: "main", Resources: corev1.ResourceRequirements{Requests: item.Requests}}
		converted[number] = kueue.PodSet{
			Name: kueue.NewPodSetReference(item.Name), Count: item.Count,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{container}, NodeSelector: item.NodeSelector, Tolerations: item.Tolerations,
			}},
		}
	}
	return converted
}

// show creates the Workload of a class's first waiting job.
func (r *replay) show(members *class) error {
	if members.head != nil || len(members.waiting) == 0 {
		return nil
	}
	first := members.waiting[0]
	// Jobs of one time have their turn in order, also those of other classes in between.
	if first.at > r.now || first.at == r.now && first.number > r.turn {
		r.await(members)
		return nil
	}
	members.waiting = members.waiting[1:]
	members.head = first
	item := &kueue.Workload{
		TypeMeta: metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "Workload"},
		ObjectMeta: metav1.ObjectMeta{
			Name: first.key.Name, Namespace: first.key.Namespace, UID: types.UID(first.key.Name), Generation: 1,
			CreationTimestamp: metav1.NewTime(epoch.Add(first.at + time.Duration(first.number))),
		},
		Spec: kueue.WorkloadSpec{
			QueueName: members.queue, PodSets: members.podSets, Active: ptr.To(true), Priority: ptr.To(members.priority),
		},
	}
	r.shown[first.key] = first
	r.store.workloads[first.key] = item
	r.workloads.Create(event.TypedCreateEvent[*kueue.Workload]{Object: item})
	r.enqueue(first.key)
	return nil
}

// observe reports what an update of a Workload means for its job.
func (r *replay) observe(item change) error {
	found, ok := r.shown[client.ObjectKeyFromObject(item.new)]
	if !ok {
		return nil
	}
	had, has := workload.HasQuotaReservation(item.old), workload.HasQuotaReservation(item.new)
	finished := workloadfinish.IsFinished(item.new)
	active := workload.IsActive(item.new)
	if found.class.head == found && (!had && has || finished || !active) {
		found.class.head = nil
		if err := r.show(found.class); err != nil {
			return err
		}
	}
	if !had && has {
		found.class.reason = r.reason(found)
		delete(r.store.waiting, found.key)
		if err := r.ask(report{Event: "reserved", Job: found.id, Flavors: flavors(item.new)}); err != nil {
			return err
		}
	}
	if has && !workloadevict.IsEvicted(item.new) {
		if err := r.askChecks(found, item, had); err != nil {
			return err
		}
	}
	if !workload.IsAdmitted(item.old) && workload.IsAdmitted(item.new) {
		if err := r.ask(report{Event: "admitted", Job: found.id, Flavors: flavors(item.new)}); err != nil {
			return err
		}
	}
	if !workloadevict.IsEvicted(item.old) && workloadevict.IsEvicted(item.new) {
		found.evictions++
		r.release(found)
		condition := apimeta.FindStatusCondition(item.new.Status.Conditions, kueue.WorkloadEvicted)
		told := report{Event: "evicted", Job: found.id, Reason: condition.Reason, Message: condition.Message}
		if err := r.ask(told); err != nil {
			return err
		}
	}
	if workload.IsActive(item.old) && !active {
		return r.ask(report{Event: "deactivated", Job: found.id})
	}
	if finished {
		return r.remove(found, item.new)
	}
	return nil
}

func flavors(item *kueue.Workload) map[string]map[string]string {
	assigned := map[string]map[string]string{}
	for _, assignment := range item.Status.Admission.PodSetAssignments {
		resources := map[string]string{}
		for resource, flavor := range assignment.Flavors {
			resources[string(resource)] = string(flavor)
		}
		assigned[string(assignment.Name)] = resources
	}
	return assigned
}

// remove deletes a finished Workload: Kueue keeps it for its owner only.
func (r *replay) remove(found *job, item *kueue.Workload) error {
	condition := apimeta.FindStatusCondition(item.Status.Conditions, kueue.WorkloadFinished)
	r.workloads.Delete(event.TypedDeleteEvent[*kueue.Workload]{Object: item})
	delete(r.store.workloads, found.key)
	delete(r.shown, found.key)
	delete(r.jobs, found.id)
	return r.ask(report{Event: "finished", Job: found.id, Reason: condition.Reason})
}

// askChecks asks for the states of admission checks that have become due.
func (r *replay) askChecks(found *job, item change, had bool) error {
	for _, check := range item.new.Status.AdmissionChecks {
		before := slices.ContainsFunc(item.old.Status.AdmissionChecks, func(old kueue.AdmissionCheckState) bool {
			return had && old.Name == check.Name && old.State == kueue.CheckStatePending
		})
		if before || check.State != kueue.CheckStatePending {
			continue
		}
		if config := r.provisioning(check.Name); config != nil && !managed(item.new, config) {
			id, name := found.id, string(check.Name)
			ready := action{Do: "Check", Job: id, At: r.now.Seconds(), Check: name, State: string(kueue.CheckStateReady)}
			if err := r.act(ready); err != nil {
				return err
			}
			continue
		}
		attempt := ptr.Deref(check.RetryCount, 0) + 1
		told := report{Event: "check", Job: found.id, Check: string(check.Name), Attempt: attempt, Flavors: flavors(item.new)}
		if err := r.ask(told); err != nil {
			return err
		}
	}
	return nil
}

// provisioning returns the configuration of a check that creates ProvisioningRequests.
func (r *replay) provisioning(name kueue.AdmissionCheckReference) *kueue.ProvisioningRequestConfig {
	var check kueue.AdmissionCheck
	var config kueue.ProvisioningRequestConfig
	if r.store.Get(r.ctx, types.NamespacedName{Name: string(name)}, &check) != nil ||
		check.Spec.ControllerName != kueue.ProvisioningRequestControllerName || check.Spec.Parameters == nil ||
		r.store.Get(r.ctx, types.NamespacedName{Name: check.Spec.Parameters.Name}, &config) != nil {
		return nil
	}
	return &config
}

// managed tells whether a job needs a ProvisioningRequest (provisioning.reqIsNeeded, 0.19.2).
func managed(item *kueue.Workload, config *kueue.ProvisioningRequestConfig) bool {
	return len(config.Spec.ManagedResources) == 0 || slices.ContainsFunc(item.Spec.PodSets, func(set kueue.PodSet) bool {
		requests := set.Template.Spec.Containers[0].Resources.Requests
		return set.Count > 0 && slices.ContainsFunc(config.Spec.ManagedResources, func(name corev1.ResourceName) bool {
			_, requested := requests[name]
			return requested
		})
	})
}

// decide carries out the client's decision about a job.
func (r *replay) decide(found *job, item action) error {
	current := r.store.workloads[found.key]
	if current == nil {
		return fmt.Errorf("the job %s has no quota yet", found.id)
	}
	target := copyOf(current)
	switch item.Do {
	case "Finish":
		return workloadfinish.Finish(r.ctx, r.store, target, kueue.WorkloadFinishedReasonSucceeded, "", r.clock)
	case "PodsReady":
		if !r.podsReady || !r.setReady(target, item.Ready) {
			return nil
		}
	case "Check":
		if err := r.setCheck(target, item); err != nil {
			return err
		}
	}
	return r.store.setStatus(target)
}

// setReady sets the condition PodsReady as Kueue's job controllers do (generatePodsReadyCondition, 0.19.2).
func (r *replay) setReady(target *kueue.Workload, ready bool) bool {
	before := apimeta.FindStatusCondition(target.Status.Conditions, kueue.WorkloadPodsReady)
	reason, status := kueue.WorkloadStarted, metav1.ConditionTrue
	switch {
	case !ready:
		reason, status = kueue.WorkloadWaitForRecovery, metav1.ConditionFalse
	case before != nil && (before.Reason == kueue.WorkloadWaitForRecovery || before.Reason == kueue.WorkloadRecovered):
		reason = kueue.WorkloadRecovered
	}
	return apimeta.SetStatusCondition(&target.Status.Conditions, workload.CreatePodsReadyCondition(status, reason, "", r.clock))
}

// setCheck sets the state of an admission check. The state Failed is a failed ProvisioningRequest: Kueue retries
// it with backoff, and rejects the Workload after the last attempt (provisioning.syncCheckStates, 0.19.2).
func (r *replay) setCheck(target *kueue.Workload, item action) error {
	number := slices.IndexFunc(target.Status.AdmissionChecks, func(check kueue.AdmissionCheckState) bool {
		return string(check.Name) == item.Check
	})
	if number < 0 {
		return fmt.Errorf("the job %s has no admission check %s", item.Job, item.Check)
	}
	next := *target.Status.AdmissionChecks[number].DeepCopy()
	next.LastTransitionTime = r.time()
	next.State = kueue.CheckState(item.State)
	if item.State == "Failed" {
		config := r.provisioning(next.Name)
		if config == nil {
			return fmt.Errorf("the admission check %s creates no ProvisioningRequests", item.Check)
		}
		retries := config.Spec.RetryStrategy
		next.State = kueue.CheckStateRejected
		if ptr.Deref(next.RetryCount, 0)+1 <= *retries.BackoffLimitCount {
			next.State = kueue.CheckStateRetry
			workload.UpdateAdmissionCheckRequeueState(&next, *retries.BackoffBaseSeconds, *retries.BackoffMaxSeconds, r.clock)
		}
	}
	workloadpatching.SetAdmissionCheckState(&target.Status.AdmissionChecks, next, r.clock)
	return nil
}

// release stops an evicted job: at once, or a while later if its last eviction was at the same time. With fair
// sharing, Kueue may evict a job that is then the first to get the quota again, and so on: the victims that it spares in
// the end count when it compares shares (fillBackWorkloads, 0.19.2). On a cluster, each round takes time.
func (r *replay) release(found *job) {
	if found.evictions > 1 && found.evicted == r.now {
		r.at(r.now+stopping, func() error { return r.stop(found) })
	} else {
		r.stopped = append(r.stopped, found)
	}
	found.evicted = r.now
}

// stop releases the quota of an evicted job whose pods are gone (jobframework.JobReconciler, 0.19.2).
func (r *replay) stop(found *job) error {
	current := r.store.workloads[found.key]
	if current == nil || !workload.HasQuotaReservation(current) {
		return nil
	}
	target := copyOf(current)
	evicted := apimeta.FindStatusCondition(target.Status.Conditions, kueue.WorkloadEvicted)
	return workloadpatching.PatchAdmissionStatus(r.ctx, r.store, target, r.clock, func(item *kueue.Workload) (bool, error) {
		again := evicted.Reason == kueue.WorkloadEvictedByPreemption || evicted.Reason == kueue.WorkloadEvictedDueToNodeFailures
		workload.SetRequeuedCondition(item, evicted.Reason, evicted.Message, again)
		reason := workload.UnadmittedWorkloadReasonWithFallback(
			kueue.WorkloadQuotaReservedReasonPendingEvaluation, kueue.WorkloadPending)
		workload.UnsetQuotaReservationWithCondition(item, reason, evicted.Message, r.clock.Now())
		if apimeta.FindStatusCondition(item.Status.Conditions, kueue.WorkloadPodsReady) != nil {
			apimeta.SetStatusCondition(&item.Status.Conditions,
				workload.CreatePodsReadyCondition(metav1.ConditionFalse, kueue.WorkloadWaitForStart, "", r.clock))
		}
		return true, nil
	})
}

// reason returns why Kueue has no quota for a job, or had none for the one before it.
func (r *replay) reason(found *job) string {
	return cmp.Or(r.store.waiting[found.key], found.class.reason)
}

// pending returns the jobs without quota, each with Kueue's reason.
func (r *replay) pending() map[string]string {
	waiting := map[string]string{}
	for _, members := range r.classes {
		for _, item := range members.waiting {
			waiting[item.id] = r.reason(members.head)
		}
	}
	for key, found := range r.shown {
		if !workload.HasQuotaReservation(r.store.workloads[key]) {
			waiting[found.id] = r.reason(found)
		}
	}
	return waiting
}
