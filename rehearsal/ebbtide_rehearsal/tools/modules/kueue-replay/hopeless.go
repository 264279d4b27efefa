package main

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/resources"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption"
	"sigs.k8s.io/kueue/pkg/util/priority"
	"sigs.k8s.io/kueue/pkg/workload"
)

// Most scheduling cycles of a full cohort with fair sharing are for heads that cannot have quota, for each of which
// Kueue looks for victims among all admitted Workloads of the cohort, a resource after the other. The sums of the
// queues are enough to tell that there are none: the search lets a queue preempt another only if its own share, with
// the head, is not larger than that of the other. Such a head goes where Kueue would put it, and its queue has no
// head in this cycle, so that those of the other queues meet as they would.

// checker tells Kueue's queues that a queue has no head in a cycle.
type checker struct {
	*schdcache.Cache
	passed map[kueue.ClusterQueueReference]bool
}

func (c *checker) ClusterQueueActive(name kueue.ClusterQueueReference) bool {
	return !c.passed[name] && c.Cache.ClusterQueueActive(name)
}

// cycle runs a scheduling cycle.
func (r *replay) cycle() error {
	some, err := r.passHopeless()
	if err == nil && some {
		schedule(r.scheduler, r.ctx)
	}
	clear(r.checker.passed)
	return err
}

// view is a snapshot of Kueue's cache, with the lowest priority that is admitted in a queue.
type view struct {
	*schdcache.Snapshot
	lowest map[kueue.ClusterQueueReference]int32
}

// passHopeless takes the hopeless heads out of the cycle, and tells whether others are left. Cycles in which all
// heads are hopeless change nothing: they become one.
func (r *replay) passHopeless() (bool, error) {
	var seen *view
	for {
		some := false
		for _, name := range r.names {
			queue := getClusterQueue(r.queues, name)
			head := first(queue)
			if head == nil || !r.cache.ClusterQueueActive(name) {
				continue
			}
			// Kueue has to give the reason once.
			found := r.shown[client.ObjectKeyFromObject(head.Obj)]
			if !r.fair || r.reason(found) == "" || queue.IsPreemptor(head) || head.LastAssignment.PendingFlavors() {
				some = true
				continue
			}
			if seen == nil {
				taken, err := r.cache.Snapshot(r.ctx)
				if err != nil {
					return false, err
				}
				seen = &view{taken, map[kueue.ClusterQueueReference]int32{}}
			}
			if !seen.hopeless(name, head) {
				some = true
				continue
			}
			queue.RequeueIfNotPresent(r.ctx, queue.Pop(), qcache.RequeueReasonPreemptionNoCandidates,
				qcache.QuotaReservedReasonWaitingForQuota)
			r.checker.passed[name] = true
		}
		if some || len(r.checker.passed) == 0 {
			return some, nil
		}
		clear(r.checker.passed)
	}
}

// hopeless tells whether a head of a queue has neither quota nor victims, with fair sharing: in each flavor, the
// quota that is left is too little, no Workload of the queue has a lower priority, and the queue's share would be
// larger than those of all others. A queue that has not reserved what it cannot have leaves no trace in the cycle.
func (v *view) hopeless(name kueue.ClusterQueueReference, head *workload.Info) bool {
	queue := v.ClusterQueue(name)
	if queue == nil || !queue.HasParent() || !preemption.CanAlwaysReclaim(queue) || len(queue.ResourceGroups) != 1 ||
		len(head.TotalRequests) != 1 || queue.FlavorFungibility.WhenCanPreempt != kueue.TryNextFlavor {
		return false
	}
	cohort := queue.Parent()
	if cohort.HasParent() || len(cohort.ChildCohorts()) > 0 {
		return false
	}
	for _, flavor := range queue.ResourceGroups[0].Flavors {
		if !outranked(queue, cohort, flavor, head.TotalRequests[0].Requests) {
			return false
		}
	}
	switch queue.Preemption.WithinClusterQueue {
	case kueue.PreemptionPolicyNever:
		return true
	case kueue.PreemptionPolicyLowerPriority:
		return v.lowestPriority(queue) >= priority.Priority(head.Obj)
	}
	return false
}

func (v *view) lowestPriority(queue *schdcache.ClusterQueueSnapshot) int32 {
	lowest, ok := v.lowest[queue.Name]
	if !ok {
		lowest = math.MaxInt32
		for _, item := range queue.Workloads {
			lowest = min(lowest, priority.Priority(item.Obj))
		}
		v.lowest[queue.Name] = lowest
	}
	return lowest
}

// outranked tells whether a flavor has too little quota left for requests, all of it is shared by others, and the
// queue's share with the requests is larger than that of every other queue.
func outranked(
	queue *schdcache.ClusterQueueSnapshot, cohort *schdcache.CohortSnapshot,
	flavor kueue.ResourceFlavorReference, requests resources.Requests,
) bool {
	usage := workload.Usage{Quota: resources.FlavorResourceQuantities{}}
	fits, covered, borrows := true, true, true
	requests.ForEach(func(name corev1.ResourceName, value int64) {
		resource, amount := resources.FlavorResource{Flavor: flavor, Resource: name}, resources.NewAmount(value)
		covered = covered && queue.ResourceGroups[0].CoveredResources.Has(name)
		usage.Quota[resource] = amount
		if amount.Cmp(queue.Available(resource)) > 0 {
			fits = false
			borrows = borrows && queue.BorrowingWith(resource, amount)
		}
	})
	if fits || !covered || !borrows {
		return false
	}
	revert := queue.SimulateUsageAddition(usage)
	defer revert()
	share := queue.DominantResourceShare()
	for _, other := range cohort.ChildCQs() {
		if other != queue && schdcache.CompareDRS(share, other.DominantResourceShare()) <= 0 {
			return false
		}
	}
	return true
}
