package main

import (
	"container/heap"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	// requeueBatch is the delay after which Kueue retries what did not fit (requeueBatchPeriod, 0.19.2).
	requeueBatch = time.Second
	// idleCycles is the number of scheduling cycles without a change, or a head that is put aside, after which the
	// queues wait for an event; there are more flavors than that only where each is tried in a cycle of its own.
	idleCycles = 6
	// stopping is the time that a job needs to stop when it is evicted twice at one time.
	stopping = time.Second
	// mostCycles at one time are a livelock.
	mostCycles = 100_000
)

// decisions are the events that concern a job's pods.
var decisions = []string{"check", "admitted", "evicted", "deactivated"}

// moment is an entry of the heap: what happens at a time, unless it concerns a Workload that no longer exists.
type moment struct {
	at       time.Duration
	number   int64
	happen   func() error
	workload *types.NamespacedName
}

type moments []moment

func (m moments) Len() int { return len(m) }
func (m moments) Less(a, b int) bool {
	return m[a].at < m[b].at || m[a].at == m[b].at && m[a].number < m[b].number
}
func (m moments) Swap(a, b int)  { m[a], m[b] = m[b], m[a] }
func (m *moments) Push(item any) { *m = append(*m, item.(moment)) }
func (m *moments) Pop() any {
	last := (*m)[len(*m)-1]
	(*m)[len(*m)-1] = moment{}
	*m = (*m)[:len(*m)-1]
	return last
}

// replay is a run: Kueue, the jobs, and the heap of what will happen.
type replay struct {
	*controllers
	ctx      context.Context
	pipe     *pipe
	now      time.Duration
	heap     moments
	number   int64
	turn     int64
	cycles   int64
	jobs     map[string]*job
	shown    map[types.NamespacedName]*job
	classes  map[string]*class
	requeues map[any]bool
	queue    []types.NamespacedName
	queued   map[types.NamespacedName]bool
	stopped  []*job
	decided  bool
}

func newReplay(first setup, p *pipe) (*replay, error) {
	k, err := newControllers(first.Configuration)
	if err != nil {
		return nil, err
	}
	r := &replay{
		controllers: k, ctx: ctrl.LoggerInto(context.Background(), logr.Discard()), pipe: p,
		jobs: map[string]*job{}, shown: map[types.NamespacedName]*job{}, classes: map[string]*class{},
		requeues: map[any]bool{}, queued: map[types.NamespacedName]bool{},
	}
	for name, labels := range first.Namespaces {
		k.store.put(namespaceObject(name, labels))
	}
	for _, content := range first.Objects {
		if err := k.apply(r.ctx, content); err != nil {
			return nil, err
		}
	}
	k.requeuer.Take()
	return r, nil
}

func duration(seconds float64) time.Duration { return time.Duration(math.Round(seconds * 1e9)) }

func (r *replay) at(when time.Duration, happen func() error) {
	r.number++
	heap.Push(&r.heap, moment{max(when, r.now), r.number, happen, nil})
}

// accept carries out the client's actions.
func (r *replay) accept(actions []action) error {
	for _, item := range actions {
		if err := r.act(item); err != nil {
			return fmt.Errorf("%s %s: %w", item.Do, item.Job, err)
		}
	}
	return nil
}

func (r *replay) act(item action) error {
	when := duration(item.At)
	switch item.Do {
	case "Submit":
		return r.submit(item)
	case "Apply":
		r.at(when, func() error { return r.apply(r.ctx, item.Manifest) })
	case "Run":
		until := time.Duration(math.MaxInt64)
		if item.Until != nil {
			until = duration(*item.Until)
		}
		return r.run(until, duration(item.Before))
	case "PodsReady", "Finish", "Check":
		found, ok := r.jobs[item.Job]
		if !ok {
			return fmt.Errorf("there is no such job")
		}
		// What was decided for one admission of a job does not concern the next one.
		admission := found.evictions
		r.at(when, func() error {
			if r.jobs[item.Job] != found || found.evictions != admission {
				return nil
			}
			return r.decide(found, item)
		})
	default:
		return fmt.Errorf("there is no such action")
	}
	return nil
}

// ask reports an event of now, and carries out the answer; without answers, only decisions are reported.
func (r *replay) ask(item report) error {
	decision := slices.Contains(decisions, item.Event)
	r.decided = r.decided || decision
	if r.pipe.unanswered && !decision {
		return nil
	}
	item.At, item.Cycles = r.now.Seconds(), r.cycles
	actions, err := r.pipe.ask(item)
	if err != nil {
		return err
	}
	return r.accept(actions)
}

// run lets time pass until nothing happens any more, or until a time, and then until the first decision before
// another time.
func (r *replay) run(until, before time.Duration) error {
	r.decided = false
	for next := r.next(); len(r.heap) > 0 && (next <= until || next < before && !r.decided); next = r.next() {
		next := heap.Pop(&r.heap).(moment)
		r.now, r.turn = next.at, next.number
		r.tick()
		if err := next.happen(); err != nil {
			return err
		}
		if err := r.settle(); err != nil {
			return err
		}
	}
	if until != math.MaxInt64 {
		r.now = max(r.now, until)
	}
	told := report{Event: "end", At: r.now.Seconds(), Cycles: r.cycles}
	if next := r.next(); next != math.MaxInt64 {
		seconds := next.Seconds()
		for duration(seconds) < next {
			// After some weeks, seconds are less exact than nanoseconds, and a run until then would not reach it.
			seconds = math.Nextafter(seconds, math.Inf(1))
		}
		told.Next = &seconds
	} else if until == math.MaxInt64 {
		told.Pending = r.pending()
	}
	return r.pipe.tell(told)
}

// next returns the time of the next entry of the heap.
func (r *replay) next() time.Duration {
	for len(r.heap) > 0 {
		if key := r.heap[0].workload; key == nil || r.store.workloads[*key] != nil {
			return r.heap[0].at
		}
		heap.Pop(&r.heap)
	}
	return math.MaxInt64
}

// tick moves the clock by a nanosecond within a time: the order of Workloads with equal times would be random.
func (r *replay) tick() {
	exact := epoch.Add(r.now)
	if now := r.clock.Now(); !now.Before(exact) {
		exact = now.Add(1)
	}
	r.clock.SetTime(exact)
}

// settle runs scheduling cycles until none changes anything.
func (r *replay) settle() error {
	for idle, cycles := 0, 0; ; cycles++ {
		if err := r.drain(); err != nil {
			return err
		}
		waiting := r.waiting()
		if idle >= idleCycles || waiting == 0 {
			return nil
		}
		if cycles == mostCycles {
			return fmt.Errorf("after %d scheduling cycles at %.3f s, Kueue still changes Workloads", cycles, r.now.Seconds())
		}
		r.tick()
		r.cycles++
		r.scheduler.Cycle(r.ctx)
		if len(r.store.changes) == 0 && r.waiting() >= waiting {
			idle++
		} else {
			idle = 0
		}
	}
}

// waiting counts the Workloads that scheduling cycles would try: without one, a cycle would wait for ever.
func (r *replay) waiting() int {
	count := 0
	for _, name := range r.names {
		if waiting, _ := r.queues.ClusterQueue(name).Pending(); waiting > 0 && r.cache.ClusterQueueActive(name) {
			count += waiting
		}
	}
	return count
}

func (r *replay) enqueue(key types.NamespacedName) {
	if !r.queued[key] {
		r.queued[key] = true
		r.queue = append(r.queue, key)
	}
}

// drain delivers updates to Kueue's event handlers and reconciles the Workloads, until there are none left.
func (r *replay) drain() error {
	for {
		changes := r.store.take()
		if len(changes) == 0 && len(r.queue) == 0 && len(r.stopped) == 0 {
			r.requeue()
			return nil
		}
		for _, item := range changes {
			r.tick()
			r.workloads.Update(event.TypedUpdateEvent[*kueue.Workload]{ObjectOld: item.old, ObjectNew: item.new})
			r.enqueue(client.ObjectKeyFromObject(item.new))
			if err := r.observe(item); err != nil {
				return err
			}
		}
		keys := r.queue
		r.queue = nil
		for _, key := range keys {
			delete(r.queued, key)
			r.tick()
			result, err := r.workloads.Reconcile(r.ctx, reconcile.Request{NamespacedName: key})
			if err != nil {
				return fmt.Errorf("Kueue's reconciler: %w", err)
			}
			if result.RequeueAfter > 0 {
				r.number++
				again := func() error { r.enqueue(key); return nil }
				heap.Push(&r.heap, moment{r.now + result.RequeueAfter, r.number, again, &key})
			}
		}
		stopped := r.stopped
		r.stopped = nil
		for _, item := range stopped {
			r.tick()
			if err := r.stop(item); err != nil {
				return err
			}
		}
	}
}

// requeue schedules the retries that Kueue has asked for, a batch for each queue or root cohort.
func (r *replay) requeue() {
	queues, cohorts := r.requeuer.Take()
	for _, name := range queues {
		r.batch(name, func() { r.queues.RequeueClusterQueue(r.ctx, name) })
	}
	for _, name := range cohorts {
		r.batch(name, func() { r.queues.RequeueCohort(r.ctx, name) })
	}
}

func (r *replay) batch(name any, retry func()) {
	if r.requeues[name] {
		return
	}
	r.requeues[name] = true
	r.at(r.now+requeueBatch, func() error {
		delete(r.requeues, name)
		retry()
		return nil
	})
}

func (r *replay) time() metav1.Time { return metav1.NewTime(r.clock.Now()) }
