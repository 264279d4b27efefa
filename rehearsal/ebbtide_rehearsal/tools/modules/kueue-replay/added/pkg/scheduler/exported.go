package scheduler

import "context"

// inline calls at once what the scheduler runs in a goroutine.
type inline struct{}

func (inline) Run(function func()) { function() }

// AdmitInline lets the scheduler write admissions before its cycle ends.
func (s *Scheduler) AdmitInline() { s.setAdmissionRoutineWrapper(inline{}) }

// Cycle runs a scheduling cycle.
func (s *Scheduler) Cycle(ctx context.Context) { s.schedule(ctx) }
