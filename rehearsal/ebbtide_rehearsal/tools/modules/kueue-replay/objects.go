package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/featuregate"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	kueueconfig "sigs.k8s.io/kueue/pkg/config"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/scheduler"
	preemptexpectations "sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption/fairsharing"
)

// epoch is the start of every run. It is far in the future, since one backoff of Kueue's reads the real clock
// (WorkloadReconciler.Update, 0.19.2) and must not have passed.
var epoch = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// clock is the time of a run. Kueue asks for it whenever it compares two Workloads, while nothing sets it: without a lock.
type clock struct {
	*clocktesting.FakeClock
	now time.Time
}

func (c *clock) Now() time.Time { return c.now }

func (c *clock) SetTime(now time.Time) {
	c.now = now
	c.FakeClock.SetTime(now)
}

// gates is the feature gates as they are configured, for which Kueue asks as often: without a record of who asked.
type gates struct {
	featuregate.FeatureGate
	enabled map[featuregate.Feature]bool
}

func (g gates) Enabled(feature featuregate.Feature) bool { return g.enabled[feature] }

func useGates() {
	all := utilfeature.DefaultMutableFeatureGate
	used := gates{all, map[featuregate.Feature]bool{}}
	for feature := range all.GetAll() {
		used.enabled[feature] = all.Enabled(feature)
	}
	utilfeature.DefaultFeatureGate = used
}

// controllers is Kueue, assembled as its command does (cmd/kueue/main.go and core.SetupControllers, 0.19.2),
// without the controllers that only write what people read.
type controllers struct {
	clock         *clock
	store         *store
	cache         *schdcache.Cache
	queues        *qcache.Manager
	requeuer      *qcache.Requeuer
	scheduler     *scheduler.Scheduler
	workloads     *core.WorkloadReconciler
	clusterQueues *core.ClusterQueueReconciler
	localQueues   *core.LocalQueueReconciler
	cohorts       *core.CohortReconciler
	names         []kueue.ClusterQueueReference
	podsReady     bool
}

func configured(content []byte) (*configapi.Configuration, error) {
	scheme := runtime.NewScheme()
	if err := configapi.AddToScheme(scheme); err != nil {
		return nil, err
	}
	var cfg configapi.Configuration
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
	if err := runtime.DecodeInto(decoder, content, &cfg); err != nil {
		return nil, fmt.Errorf("Kueue's configuration: %w", err)
	}
	if wait := cfg.WaitForPodsReady; wait != nil && ptr.Deref(wait.BlockAdmission, false) {
		return nil, fmt.Errorf("Kueue's configuration has waitForPodsReady.blockAdmission, which a replay does not support")
	}
	errs := kueueconfig.LoadAndValidateFeatureGates("", cfg.FeatureGates)
	for _, err := range kueueconfig.Validate(&cfg, scheme) {
		if !strings.HasPrefix(err.Field, "integrations") { // Their controllers are not in this program.
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("Kueue's configuration: %w", errs.ToAggregate())
	}
	return &cfg, nil
}

func newControllers(content []byte) (*controllers, error) {
	cfg, err := configured(content)
	if err != nil {
		return nil, err
	}
	order := configapi.EvictionTimestamp
	if cfg.WaitForPodsReady != nil && cfg.WaitForPodsReady.RequeuingStrategy != nil {
		order = ptr.Deref(cfg.WaitForPodsReady.RequeuingStrategy.Timestamp, order)
	}
	k := &controllers{
		clock: &clock{clocktesting.NewFakeClock(epoch), epoch}, store: newStore(),
		podsReady: cfg.WaitForPodsReady != nil,
	}
	useGates()
	cacheOptions := []schdcache.Option{
		schdcache.WithFairSharing(fairsharing.Enabled(cfg.FairSharing)),
		schdcache.WithAdmissionFairSharing(cfg.AdmissionFairSharing),
	}
	recorder, preemptions := &events.FakeRecorder{}, preemptexpectations.New()
	queueOptions := []qcache.Option{
		qcache.WithClock(k.clock), qcache.WithPreemptionExpectations(preemptions),
		qcache.WithPodsReadyRequeuingTimestamp(order), qcache.WithAdmissionFairSharing(cfg.AdmissionFairSharing),
	}
	if cfg.Resources != nil {
		excluded, transformed := cfg.Resources.ExcludeResourcePrefixes, cfg.Resources.Transformations
		cacheOptions = append(cacheOptions,
			schdcache.WithExcludedResourcePrefixes(excluded), schdcache.WithResourceTransformations(transformed))
		queueOptions = append(queueOptions,
			qcache.WithExcludedResourcePrefixes(excluded), qcache.WithResourceTransformations(transformed))
	}
	k.cache = schdcache.New(k.store, cacheOptions...)
	queues, requeuer := qcache.NewManagerForUnitTestsWithRequeuer(k.store, k.cache, queueOptions...)
	k.queues, k.requeuer = queues, requeuer
	k.scheduler = scheduler.New(queues, k.cache, k.store, recorder,
		scheduler.WithClock(nil, k.clock), scheduler.WithPodsReadyRequeuingTimestamp(order),
		scheduler.WithFairSharing(cfg.FairSharing), scheduler.WithAdmissionFairSharing(cfg.AdmissionFairSharing),
		scheduler.WithPreemptionExpectations(preemptions),
	)
	k.scheduler.AdmitInline()
	k.workloads = core.NewWorkloadReconciler(k.store, queues, k.cache, recorder,
		core.WithConfiguredPodsReady(cfg.WaitForPodsReady), core.WithWorkloadClock(k.clock),
		core.WithPreemptionExpectations(preemptions), core.WithAdmissionFairSharing(cfg.AdmissionFairSharing),
	)
	k.clusterQueues = core.NewClusterQueueReconciler(k.store, queues, k.cache)
	k.localQueues = core.NewLocalQueueReconciler(k.store, queues, k.cache)
	k.cohorts = core.NewCohortReconciler(k.store, k.cache, queues)
	return k, nil
}

// apply creates or updates an object of the declaration.
func (k *controllers) apply(ctx context.Context, content []byte) error {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(content, &kind); err != nil {
		return err
	}
	log := ctrl.LoggerFrom(ctx)
	switch kind.Kind {
	case "ResourceFlavor":
		object, _, err := decoded[kueue.ResourceFlavor](k.store, content)
		if err == nil {
			qcache.NotifyRetryInadmissible(k.queues, k.cache.AddOrUpdateResourceFlavor(log, object))
		}
		return err
	case "AdmissionCheck":
		object, _, err := decoded[kueue.AdmissionCheck](k.store, content)
		if err == nil {
			apimeta.SetStatusCondition(&object.Status.Conditions,
				metav1.Condition{Type: kueue.AdmissionCheckActive, Status: metav1.ConditionTrue, Reason: "Active"})
			qcache.NotifyRetryInadmissible(k.queues, k.cache.AddOrUpdateAdmissionCheck(log, object))
		}
		return err
	case "Cohort":
		object, _, err := decoded[kueue.Cohort](k.store, content)
		if err == nil {
			_, err = k.cohorts.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
		}
		return err
	case "ClusterQueue":
		return k.applyClusterQueue(content)
	case "LocalQueue":
		object, _, err := decoded[kueue.LocalQueue](k.store, content)
		if err == nil {
			k.localQueues.Create(event.TypedCreateEvent[*kueue.LocalQueue]{Object: object})
		}
		return err
	case "ProvisioningRequestConfig":
		object, _, err := decoded[kueue.ProvisioningRequestConfig](k.store, content)
		if err == nil {
			defaultRetries(object)
		}
		return err
	}
	return fmt.Errorf("a replay has no use for the kind %q", kind.Kind)
}

// object is a pointer to T that is a Kubernetes object.
type object[T any] interface {
	*T
	client.Object
}

// decoded parses and stores an object, and returns it with the previous one.
func decoded[T any, P object[T]](s *store, content []byte) (P, P, error) {
	parsed := P(new(T))
	if err := json.Unmarshal(content, parsed); err != nil {
		return nil, nil, err
	}
	previous, _ := s.put(parsed).(P)
	return parsed, previous, nil
}

func (k *controllers) applyClusterQueue(content []byte) error {
	next, previous, err := decoded[kueue.ClusterQueue](k.store, content)
	if err != nil {
		return err
	}
	defaultQueue(next)
	if previous != nil {
		k.clusterQueues.Update(event.TypedUpdateEvent[*kueue.ClusterQueue]{ObjectOld: previous, ObjectNew: next})
		return nil
	}
	name := kueue.ClusterQueueReference(next.Name)
	k.clusterQueues.Create(event.TypedCreateEvent[*kueue.ClusterQueue]{Object: next})
	created := k.queues.ClusterQueue(name)
	if created == nil {
		return fmt.Errorf("Kueue rejects the ClusterQueue %s", name)
	}
	created.SetClock(k.clock)
	k.names = append(k.names, name)
	return nil
}

// defaultQueue sets what the API server defaults and the controllers rely on (CRD of Kueue 0.19.2).
func defaultQueue(queue *kueue.ClusterQueue) {
	spec := &queue.Spec
	spec.QueueingStrategy = either(spec.QueueingStrategy, kueue.BestEffortFIFO)
	spec.StopPolicy = ptr.To(ptr.Deref(spec.StopPolicy, kueue.None))
	if spec.FlavorFungibility == nil {
		spec.FlavorFungibility = &kueue.FlavorFungibility{}
	}
	fungibility := spec.FlavorFungibility
	fungibility.WhenCanBorrow = either(fungibility.WhenCanBorrow, kueue.MayStopSearch)
	fungibility.WhenCanPreempt = either(fungibility.WhenCanPreempt, kueue.TryNextFlavor)
	if spec.Preemption == nil {
		spec.Preemption = &kueue.ClusterQueuePreemption{}
	}
	preemption := spec.Preemption
	preemption.WithinClusterQueue = either(preemption.WithinClusterQueue, kueue.PreemptionPolicyNever)
	preemption.ReclaimWithinCohort = either(preemption.ReclaimWithinCohort, kueue.PreemptionPolicyNever)
	if preemption.BorrowWithinCohort != nil {
		borrowing := preemption.BorrowWithinCohort
		borrowing.Policy = either(borrowing.Policy, kueue.BorrowWithinCohortPolicyNever)
	}
}

// defaultRetries sets the defaults of a retry strategy (CRD of Kueue 0.19.2).
func defaultRetries(config *kueue.ProvisioningRequestConfig) {
	if config.Spec.RetryStrategy == nil {
		config.Spec.RetryStrategy = &kueue.ProvisioningRequestRetryStrategy{}
	}
	retries := config.Spec.RetryStrategy
	retries.BackoffLimitCount = ptr.To(ptr.Deref(retries.BackoffLimitCount, 3))
	retries.BackoffBaseSeconds = ptr.To(ptr.Deref(retries.BackoffBaseSeconds, 60))
	retries.BackoffMaxSeconds = ptr.To(ptr.Deref(retries.BackoffMaxSeconds, 1800))
}

func either[T ~string](value, otherwise T) T {
	if value == "" {
		return otherwise
	}
	return value
}

func namespaceObject(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}
