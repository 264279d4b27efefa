// Command streaming serves `kubectl exec`, `attach`, `logs` and `port-forward` for pods that run as processes
// of this machine, with the packages of kubelet and container runtimes. Whoever reaches it runs commands as its
// user, so it listens on a socket, in a directory of that user.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/creack/pty"
	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/logs"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const (
	idleTimeout  = 4 * time.Hour // the kubelet's default (streamingConnectionIdleTimeout, 1.36)
	drainTimeout = 5 * time.Second
)

// session is a pod's container, as the kubelet of such pods describes it in a file
// (ebbtide_rehearsal.cloud.node_pools.pod_processes).
type session struct {
	Container   string
	Directory   string
	Environment []string
	Log         string
	Previous    string        // the log before the last restart
	Ports       map[int32]int // of this machine, by declared port
}

// of returns a handler that serves the session of the pod in the request's path.
func of(sessions *os.Root, serve func(session, http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var found session
		namespace, pod, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
		text, err := sessions.ReadFile(namespace + "_" + pod + ".json")
		if err == nil {
			err = json.Unmarshal(text, &found)
		}
		if err != nil || (container != "" && container != found.Container) {
			message := fmt.Sprintf("container %q of pod %s/%s does not run as a process", container, namespace, pod)
			http.Error(w, message, http.StatusNotFound)
		} else if err := serve(found, w, r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}
}

// containers has the state of containers by the names of their logs, which are read-only once they are complete.
type containers struct{ criapi.RuntimeService }

func (containers) ContainerStatus(_ context.Context, log string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	info, err := os.Stat(log)
	if err != nil {
		return nil, err
	}
	state := runtimeapi.ContainerState_CONTAINER_RUNNING
	if info.Mode()&0o200 == 0 {
		state = runtimeapi.ContainerState_CONTAINER_EXITED
	}
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{State: state}}, nil
}

// checkRunning returns an error if the container has ended.
func (s session) checkRunning(ctx context.Context) error {
	status, err := containers{}.ContainerStatus(ctx, s.Log, false)
	if err == nil && status.Status.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		err = fmt.Errorf("container %q is not running", s.Container)
	}
	return err
}

func (s session) exec(w http.ResponseWriter, r *http.Request) error {
	options, err := remotecommand.NewOptions(r)
	if err == nil {
		remotecommand.ServeExec(w, r, s, "", "", "", r.Form["command"], options, idleTimeout,
			remotecommand.DefaultStreamCreationTimeout, remotecommand.SupportedStreamingProtocols)
	}
	return err
}

// ExecInContainer runs a command in the directory and with the environment of the container.
func (s session) ExecInContainer(ctx context.Context, _, _, _ string, words []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	if err := s.checkRunning(ctx); err != nil {
		return err
	}
	command := exec.Command(words[0], words[1:]...)
	command.Dir, command.Env = s.Directory, s.Environment
	if out != nil {
		command.Stdout = out
	}
	if errOut != nil {
		command.Stderr = errOut
	}
	var err error
	if tty {
		err = onTerminal(command, in, resize)
	} else {
		err = onPipes(command, in)
	}
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return err
	}
	code := ended.ExitCode()
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	return utilexec.CodeExitError{Err: err, Code: code}
}

// onPipes runs a command, which may end before the input of its client.
func onPipes(command *exec.Cmd, in io.Reader) error {
	if in != nil {
		input, err := command.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(input, in)
			_ = input.Close()
		}()
	}
	return command.Run()
}

// onTerminal runs a command with a terminal of its own, so that Ctrl-C and jobs work, until all its output has
// been read.
func onTerminal(command *exec.Cmd, in io.Reader, resize <-chan remotecommand.TerminalSize) error {
	out := command.Stdout
	if out == nil {
		out = io.Discard
	}
	command.Stdout = nil
	terminal, err := pty.Start(command)
	if err != nil {
		return err
	}
	defer terminal.Close()
	go func() {
		for size := range resize {
			_ = pty.Setsize(terminal, &pty.Winsize{Rows: size.Height, Cols: size.Width})
		}
	}()
	if in != nil {
		go func() { _, _ = io.Copy(terminal, in) }()
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(out, terminal)
	}()
	err = command.Wait()
	select {
	case <-drained:
	case <-time.After(drainTimeout): // a process in the background has the terminal open
	}
	return err
}

func (s session) attach(w http.ResponseWriter, r *http.Request) error {
	options, err := remotecommand.NewOptions(r)
	if err == nil {
		remotecommand.ServeAttach(w, r, s, "", "", "", options, idleTimeout,
			remotecommand.DefaultStreamCreationTimeout, remotecommand.SupportedStreamingProtocols)
	}
	return err
}

// AttachContainer passes on the container's output from now on. It takes no input.
func (s session) AttachContainer(ctx context.Context, _, _, _ string, _ io.Reader, out, errOut io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	options := &logs.LogOptions{TailLines: new(int64), Follow: true}
	return logs.ReadLogs(ctx, s.Log, s.Log, options, containers{}, out, errOut)
}

func (s session) portForward(w http.ResponseWriter, r *http.Request) error {
	options, err := portforward.NewV4Options(r)
	if err == nil {
		portforward.ServePortForward(w, r, s, r.PathValue("pod"), "", options, idleTimeout,
			remotecommand.DefaultStreamCreationTimeout, portforward.SupportedProtocols)
	}
	return err
}

// PortForward connects a client with a declared port of the container.
func (s session) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	local, ok := s.Ports[port]
	if !ok {
		return fmt.Errorf("container %q does not declare port %d", s.Container, port)
	}
	if err := s.checkRunning(ctx); err != nil {
		return err
	}
	connection, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: local})
	if err != nil {
		return err
	}
	defer connection.Close()
	go func() {
		_, _ = io.Copy(connection, stream)
		_ = connection.CloseWrite()
	}()
	_, err = io.Copy(stream, connection)
	return err
}

func (s session) logs(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	options, err := logOptions(query)
	if err != nil {
		return err
	}
	file := s.Log
	if query.Get("previous") == "true" {
		file = s.Previous
	}
	if file == "" {
		return fmt.Errorf("previous terminated container %q not found", s.Container)
	}
	out := flushed{w}
	return logs.ReadLogs(r.Context(), file, file, options, containers{}, out, out)
}

// logOptions reads the parameters that the API server writes (kubernetes 1.36, pkg/registry/core/pod/strategy.go).
func logOptions(query url.Values) (*logs.LogOptions, error) {
	options := &logs.LogOptions{Follow: query.Get("follow") == "true", Timestamp: query.Get("timestamps") == "true"}
	var seconds *int64
	numbers := map[string]**int64{
		"tailLines": &options.TailLines, "limitBytes": &options.LimitBytes, "sinceSeconds": &seconds,
	}
	for name, number := range numbers {
		if !query.Has(name) {
			continue
		}
		value, err := strconv.ParseInt(query.Get(name), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		*number = &value
	}
	if seconds != nil {
		options.Since = time.Now().Add(-time.Duration(*seconds) * time.Second)
	}
	var err error
	if query.Has("sinceTime") {
		options.Since, err = time.Parse(time.RFC3339, query.Get("sinceTime"))
	}
	return options, err
}

// flushed sends each line at once.
type flushed struct{ http.ResponseWriter }

func (f flushed) Write(line []byte) (int, error) {
	count, err := f.ResponseWriter.Write(line)
	if err == nil {
		err = http.NewResponseController(f.ResponseWriter).Flush()
	}
	return count, err
}

func main() {
	socket := flag.String("socket", "", "the socket to listen on")
	directory := flag.String("sessions", "", "the directory of the sessions")
	certificate := flag.String("certificate", "", "the serving certificate")
	key := flag.String("key", "", "its key")
	flag.Parse()
	sessions, err := os.OpenRoot(*directory)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", *socket)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/exec/{namespace}/{pod}/{container}", of(sessions, session.exec))
	mux.Handle("/attach/{namespace}/{pod}/{container}", of(sessions, session.attach))
	mux.Handle("/portForward/{namespace}/{pod}", of(sessions, session.portForward))
	mux.Handle("/containerLogs/{namespace}/{pod}/{container}", of(sessions, session.logs))
	log.Fatal((&http.Server{Handler: mux, ReadHeaderTimeout: drainTimeout}).ServeTLS(listener, *certificate, *key))
}
