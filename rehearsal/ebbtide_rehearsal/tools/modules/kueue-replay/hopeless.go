package main

import (
	"math"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/resources"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption/common"
	"sigs.k8s.io/kueue/pkg/util/priority"
	"sigs.k8s.io/kueue/pkg/workload"
)

// Most scheduling cycles of a full cohort with fair sharing are for heads that cannot have quota, for each of which
// Kueue looks for victims among all admitted Workloads of the cohort, a resource after the other. The shares of the
// queues are often enough to tell that there are too few: the search lets a queue preempt another only if its own
// share, with the head, is not larger than that of the other. Such a head goes where Kueue would put it, and its queue
// has no head in this cycle, so that those of the other queues meet as they would.

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
		r.scheduler.Cycle(r.ctx)
	}
	clear(r.checker.passed)
	return err
}

// passHopeless takes the hopeless heads out of the cycle, and tells whether others are left. Cycles in which all
// heads are hopeless change nothing: they become one.
func (r *replay) passHopeless() (bool, error) {
	var seen *schdcache.Snapshot
	for {
		some := false
		for _, name := range r.names {
			queue := r.queues.ClusterQueue(name)
			head := queue.Head()
			if head == nil || !r.cache.ClusterQueueActive(name) {
				continue
			}
			// Kueue has to give the reason once.
			found := r.shown[client.ObjectKeyFromObject(head.Obj)]
			if !r.fair || r.exhaustive || r.reason(found) == "" || queue.IsPreemptor(head) ||
				head.LastAssignment.PendingFlavors() {
				some = true
				continue
			}
			if seen == nil {
				var err error
				if seen, err = r.cache.Snapshot(r.ctx); err != nil {
					return false, err
				}
			}
			if !r.hopeless(seen.ClusterQueue(name), head) {
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

// hopeless tells whether a head of a queue has neither quota nor enough victims, with fair sharing, in any flavor. A
// queue that has not reserved what it cannot have leaves no trace in the cycle.
func (r *replay) hopeless(queue *schdcache.ClusterQueueSnapshot, head *workload.Info) bool {
	if queue == nil || !queue.HasParent() || !preemption.CanAlwaysReclaim(queue) || len(queue.ResourceGroups) != 1 ||
		len(head.TotalRequests) != 1 || queue.FlavorFungibility.WhenCanPreempt != kueue.TryNextFlavor {
		return false
	}
	cohort := queue.Parent()
	if cohort.HasParent() || len(cohort.ChildCohorts()) > 0 {
		return false
	}
	var lower []*workload.Info
	switch queue.Preemption.WithinClusterQueue {
	case kueue.PreemptionPolicyNever:
	case kueue.PreemptionPolicyLowerPriority:
		if own := priority.Priority(head.Obj); own > r.lowest {
			for _, item := range queue.Workloads {
				if priority.Priority(item.Obj) < own {
					lower = append(lower, item)
				}
			}
		}
	default:
		return false
	}
	for _, flavor := range queue.ResourceGroups[0].Flavors {
		if !r.short(queue, flavor, head.TotalRequests[0].Requests, lower) {
			return false
		}
	}
	return true
}

// short tells whether a flavor has too little quota for requests of a queue, even without all that Kueue might preempt:
// the queue's Workloads of lower priority, and a part of those of queues with a larger share.
func (r *replay) short(
	queue *schdcache.ClusterQueueSnapshot, flavor kueue.ResourceFlavorReference, requests resources.Requests,
	lower []*workload.Info,
) bool {
	usage := workload.Usage{Quota: resources.FlavorResourceQuantities{}}
	missing := amounts{}
	covered, borrows := true, true
	requests.ForEach(func(name corev1.ResourceName, value int64) {
		resource, amount := resources.FlavorResource{Flavor: flavor, Resource: name}, resources.NewAmount(value)
		covered = covered && queue.ResourceGroups[0].CoveredResources.Has(name)
		usage.Quota[resource] = amount
		if left := queue.Available(resource); amount.Cmp(left) > 0 {
			missing[name] = number(amount.Sub(left))
			borrows = borrows && queue.BorrowingWith(resource, amount)
		}
	})
	// A queue within its quota takes it back from others, whatever the shares are.
	if len(missing) == 0 || !covered || !borrows {
		return false
	}
	own := workload.Usage{Quota: resources.FlavorResourceQuantities{}}
	for _, item := range lower {
		for resource, amount := range item.FlavorResourceUsage() {
			own.Quota[resource] = own.Quota[resource].Add(amount)
			if _, ok := missing[resource.Resource]; ok && resource.Flavor == flavor {
				missing[resource.Resource] -= number(amount)
			}
		}
		if !missing.some() {
			return false
		}
	}
	defer queue.SimulateUsageAddition(usage)()
	defer queue.SimulateUsageRemoval(own)()
	share := queue.DominantResourceShare()
	if share.IsZero() || math.IsInf(share.PreciseWeightedShare(), 1) {
		return false
	}
	for _, other := range queue.Parent().ChildCQs() {
		if other != queue && schdcache.CompareDRS(share, other.DominantResourceShare()) <= 0 {
			r.takeFrom(other, flavor, share, missing)
		}
	}
	return missing.some()
}

// takeFrom subtracts the most that Kueue would take of a flavor from a queue, for another one whose share is given with
// its head (runFirstFsStrategy and runSecondFsStrategy, 0.19.2): Workloads without which the queue's share is still not
// smaller, and then, if its share is larger, the first candidate that is none of these.
func (r *replay) takeFrom(
	queue *schdcache.ClusterQueueSnapshot, flavor kueue.ResourceFlavorReference, share schdcache.DRS, missing amounts,
) {
	lendable, here, elsewhere := amounts{}, amounts{}, amounts{}
	for resource, quota := range queue.Parent().ResourceNode.SubtreeQuota {
		lendable[resource.Resource] += number(quota)
		borrowed := number(queue.ResourceNode.Usage[resource].Sub(queue.ResourceNode.SubtreeQuota[resource]))
		if resource.Flavor == flavor {
			here[resource.Resource] += max(0, borrowed)
		} else {
			elsewhere[resource.Resource] += max(0, borrowed)
		}
	}
	var candidates []usage
	var first *workload.Info
	var firstUsed usage
	for _, item := range queue.Workloads {
		used := usageOf(item, flavor)
		if !used.hasAny(missing) {
			continue
		}
		candidates = append(candidates, used)
		if first == nil || common.CandidatesOrdering(logr.Discard(), false, item, first, "", r.clock.Now()) < 0 {
			first, firstUsed = item, used
		}
	}
	larger := schdcache.CompareDRS(share, queue.DominantResourceShare()) < 0
	level := share.PreciseWeightedShare()*queue.FairWeight/1000 - 1e-6 // A millionth for rounding.
	for wanted := range missing {
		least, most, total := math.Inf(1), 0.0, 0.0
		for _, used := range candidates {
			amount := used.of(wanted)
			least, most, total = min(least, amount), max(most, amount), total+amount
		}
		kept := 0.0
		for name, all := range lendable {
			beyond := here[name] + elsewhere[name] - level*all
			switch {
			case all == 0 || beyond <= 0:
			case elsewhere[name] >= level*all:
				kept = math.Inf(1)
			default:
				kept = max(kept, beyond/leastPerUnit(candidates, name, wanted))
			}
		}
		switch {
		case kept >= least:
			missing[wanted] -= min(kept+most, total)
		case larger && !r.admissionFair:
			missing[wanted] -= firstUsed.of(wanted)
		case larger:
			missing[wanted] -= most
		}
	}
}

// leastPerUnit returns the least amount of a resource that a candidate has for each unit of the wanted one.
func leastPerUnit(candidates []usage, name, wanted corev1.ResourceName) float64 {
	least := math.Inf(1)
	for _, used := range candidates {
		if amount := used.of(wanted); amount > 0 {
			least = min(least, used.of(name)/amount)
		}
	}
	return least
}

type amounts map[corev1.ResourceName]float64

// some tells whether some amount is positive.
func (a amounts) some() bool {
	for _, amount := range a {
		if amount > 0 {
			return true
		}
	}
	return false
}

// used is an amount of a resource.
type used struct {
	name   corev1.ResourceName
	amount float64
}

// usage is what a Workload uses of a flavor, for each of its pod sets.
type usage []used

// usageOf returns what a Workload uses of a flavor.
func usageOf(item *workload.Info, flavor kueue.ResourceFlavorReference) usage {
	var all usage
	for _, set := range item.TotalRequests {
		if set.Requests != nil {
			set.Requests.ForEach(func(name corev1.ResourceName, value int64) {
				if set.Flavors[name] == flavor {
					all = append(all, used{name, float64(value)})
				}
			})
		}
	}
	return all
}

// of returns the amount of a resource.
func (u usage) of(name corev1.ResourceName) float64 {
	sum := 0.0
	for _, item := range u {
		if item.name == name {
			sum += item.amount
		}
	}
	return sum
}

// hasAny tells whether a resource of others is in it.
func (u usage) hasAny(wanted amounts) bool {
	for _, item := range u {
		if _, ok := wanted[item.name]; ok {
			return true
		}
	}
	return false
}

func number(amount resources.Amount) float64 { return float64(amount.Int64()) }
