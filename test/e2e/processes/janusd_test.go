package processes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// janusd is a process of janusd.
type janusd struct {
	*harness.Program
	world *world
}

// start starts janusd for the world's namespace, as the ServiceAccount that deploy/
// makes and with its rights.
func (w *world) start(args ...string) *janusd {
	w.t.Helper()
	locks := "targets"
	if testcluster.LocksInTables() {
		locks = "namespaces"
	}
	j := &janusd{harness.RunProgram(w.t, exec.Command(binary(w.t), append([]string{
		"--kubeconfig=" + w.kubeconfig, "--watch-namespaces=" + w.namespace, "--locks=" + locks,
		"--metrics-bind-address=127.0.0.1:0", "--metrics-secure=false", "--health-probe-bind-address=0",
	}, args...)...)), w}
	w.add(j)
	return j
}

// works waits until janusd runs Transactions.
func (j *janusd) works() {
	j.world.t.Helper()
	j.world.until("janusd watches Transactions", func(context.Context) bool {
		_, ok := j.Field("watching Transactions", "msg")
		return ok || !j.running()
	})
}

// signal sends a signal and counts it; SIGCONT is not a fault.
func (j *janusd) signal(s syscall.Signal) {
	if s != syscall.SIGCONT {
		j.world.counts.add(name(s)+" janusd", 1)
	}
	j.Signal(s)
}

// name is that of a signal as people write it.
func name(s syscall.Signal) string {
	return map[syscall.Signal]string{
		syscall.SIGKILL: "SIGKILL", syscall.SIGTERM: "SIGTERM", syscall.SIGSTOP: "SIGSTOP", syscall.SIGCONT: "SIGCONT",
	}[s]
}

// kill kills janusd and waits until it is gone.
func (j *janusd) kill() {
	j.signal(syscall.SIGKILL)
	<-j.Ended()
}

func (j *janusd) running() bool {
	select {
	case <-j.Ended():
		return false
	default:
		return true
	}
}

// exit waits for the end of janusd and returns its exit code.
func (j *janusd) exit(t testing.TB) int {
	t.Helper()
	select {
	case <-j.Ended():
		return j.ExitCode()
	case <-time.After(patience):
		require.Fail(t, "janusd does not end", "%d wrote:\n%s", j.PID(), j.tail())
		return -1
	}
}

// stopInOrder wants janusd to end when it is told to.
func (j *janusd) stopInOrder(t testing.TB) {
	t.Helper()
	j.Signal(syscall.SIGTERM)
	assert.Equal(t, 0, j.exit(t), "janusd did not end in order; it wrote:\n%s", j.tail())
}

// tail is the end of the log.
func (j *janusd) tail() string {
	log := j.Log()
	return log[max(0, len(log)-4000):]
}

// metrics returns what janusd serves as metrics, or nothing if it does not yet.
func (j *janusd) metrics() string {
	address, ok := j.Field("serving metrics", "address")
	if !ok {
		return ""
	}
	client := &http.Client{Timeout: patience}
	resp, err := client.Get(fmt.Sprintf("http://%s/metrics", address))
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return ""
	}
	return string(body)
}
