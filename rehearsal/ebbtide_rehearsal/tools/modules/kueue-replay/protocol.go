// Kueue adds a random part to its backoffs, which has to be the same in equal runs.
//
//go:debug randautoseed=0

// The unmodified Kueue in virtual time: its scheduler, caches, queues and reconciler over an API server in memory.
//
// Standard input is JSON, a value per line. The first is the setup; each further one is an array of actions, and
// the last action before a run is "Run". During the run, every line of standard output is an event, answered by
// one array of actions; the event "end" needs no answer, and another run may follow it. If the setup says that
// events are not answered, only decisions are reported.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

// setup has the objects of a declaration, as manifests.
type setup struct {
	Configuration json.RawMessage              `json:"configuration"`
	Namespaces    map[string]map[string]string `json:"namespaces"`
	Objects       []json.RawMessage            `json:"objects"`
	Unanswered    bool                         `json:"unanswered"`
}

// podSet is a group of equal pods of a job.
type podSet struct {
	Name         string              `json:"name"`
	Count        int32               `json:"count"`
	Requests     corev1.ResourceList `json:"requests"`
	NodeSelector map[string]string   `json:"node_selector"`
	Tolerations  []corev1.Toleration `json:"tolerations"`
}

// action is what the client decides (kueue_replay.kueue); At is in seconds from the start.
type action struct {
	Do       string          `json:"do"`
	At       float64         `json:"at"`
	Job      string          `json:"job"`
	Queue    string          `json:"queue"`
	PodSets  []podSet        `json:"pod_sets"`
	Priority int32           `json:"priority"`
	Ready    bool            `json:"ready"`
	Check    string          `json:"check"`
	State    string          `json:"state"`
	Manifest json.RawMessage `json:"manifest"`
	Until    *float64        `json:"until"`
	Before   float64         `json:"before"`
}

// report is an event of the run.
type report struct {
	Event   string                       `json:"event"`
	At      float64                      `json:"at"`
	Job     string                       `json:"job,omitempty"`
	Flavors map[string]map[string]string `json:"flavors,omitempty"`
	Reason  string                       `json:"reason,omitempty"`
	Message string                       `json:"message,omitempty"`
	Check   string                       `json:"check,omitempty"`
	Attempt int32                        `json:"attempt,omitempty"`
	Pending map[string]string            `json:"pending,omitempty"`
	Cycles  int64                        `json:"cycles,omitempty"`
	Next    *float64                     `json:"next,omitempty"`
}

// pipe is the connection to the client.
type pipe struct {
	in         *json.Decoder
	out        *bufio.Writer
	to         *json.Encoder
	unanswered bool
}

func newPipe(in io.Reader, out io.Writer) *pipe {
	writer := bufio.NewWriter(out)
	return &pipe{json.NewDecoder(bufio.NewReaderSize(in, 1<<16)), writer, json.NewEncoder(writer), false}
}

func (p *pipe) tell(item report) error {
	if err := p.to.Encode(item); err != nil {
		return err
	}
	return p.out.Flush()
}

// ask reports an event and reads the client's actions, if it answers events.
func (p *pipe) ask(item report) ([]action, error) {
	if p.unanswered {
		return nil, p.to.Encode(item)
	}
	if err := p.tell(item); err != nil {
		return nil, err
	}
	return p.actions()
}

func (p *pipe) actions() ([]action, error) {
	var actions []action
	return actions, p.in.Decode(&actions)
}

func serve(p *pipe) error {
	var first setup
	if err := p.in.Decode(&first); err != nil {
		return fmt.Errorf("the setup: %w", err)
	}
	p.unanswered = first.Unanswered
	run, err := newReplay(first, p)
	if err != nil {
		return err
	}
	for {
		actions, err := p.actions()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = run.accept(actions)
		}
		if err != nil {
			return err
		}
	}
}

func main() {
	debug.SetGCPercent(1000)
	ctrl.SetLogger(logr.Discard())
	if err := serve(newPipe(os.Stdin, os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
