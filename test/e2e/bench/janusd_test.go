package bench

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// janusd is a running janusd, with the rights that are shipped.
type janusd struct {
	command *exec.Cmd
	ready   time.Duration // from its start until it said that it is ready
	log     *os.File
}

// startJanusd starts janusd as it is run without any flags that matter here.
func (s *stage) startJanusd(ctx context.Context) (*janusd, error) {
	if err := s.client.JanusdKubeconfig(ctx, s.file("kubeconfig")); err != nil {
		return nil, err
	}
	return s.startWith(ctx, s.file("kubeconfig"), "--locks="+*locks)
}

// startWith starts a janusd with some flags.
func (s *stage) startWith(ctx context.Context, kubeconfig string, flags ...string) (*janusd, error) {
	health, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(s.file("janusd.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	flags = append(flags, "--kubeconfig="+kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address="+health)
	j := &janusd{log: log, command: exec.Command(s.program, append(flags, strings.Fields(*further)...)...)}
	j.command.Stderr = log
	j.command.Env = append(os.Environ(), strings.Fields(*environment)...)
	began := time.Now()
	if err := j.command.Start(); err != nil {
		return nil, err
	}
	err = wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
		if err != nil {
			return false, err
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return false, nil // It does not listen yet.
		}
		return answer.StatusCode == http.StatusOK, answer.Body.Close()
	})
	if err != nil {
		j.stop()
		return nil, fmt.Errorf("janusd is not ready: %w; see %s", err, log.Name())
	}
	j.ready = time.Since(began)
	return j, nil
}

func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (j *janusd) stop() {
	_ = j.command.Process.Signal(os.Interrupt)
	_ = j.command.Wait()
	_ = j.log.Close()
}

// process is one that is measured, by its id.
type process int

// usage is what a process has used so far.
type usage struct {
	cpu     time.Duration
	written int64 // bytes; those of janusd to the API server and the log
	read    int64 // bytes
	peak    int64 // bytes of memory, since it was last reset
}

// ticks are how many there are in a second of what the kernel says of the CPU.
const ticks = 100

// used reads what the kernel says of janusd.
func (j *janusd) used() (usage, error) { return process(j.command.Process.Pid).used() }

// used reads what the kernel says of a process.
func (p process) used() (u usage, err error) {
	stat, err := p.proc("stat")
	if err != nil {
		return u, err
	}
	// The name of the program is in parentheses, and may hold anything.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return u, fmt.Errorf("/proc/%d/stat is truncated", p)
	}
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return u, err
		}
		u.cpu += time.Duration(n) * time.Second / ticks
	}
	if u.written, err = p.number("io", "wchar:"); err != nil {
		return u, err
	}
	if u.read, err = p.number("io", "rchar:"); err != nil {
		return u, err
	}
	u.peak, err = p.number("status", "VmHWM:")
	u.peak <<= 10
	return u, err
}

// resetPeak makes the peak what it is now.
func (j *janusd) resetPeak() error {
	return os.WriteFile(filepath.Join("/proc", strconv.Itoa(j.command.Process.Pid), "clear_refs"), []byte("5"), 0o600)
}

func (p process) proc(name string) (string, error) {
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(int(p)), name))
	return string(bytes.TrimSpace(content)), err
}

// number is the number that follows a name.
func (p process) number(file, name string) (int64, error) {
	content, err := p.proc(file)
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(content, name)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, fmt.Errorf("/proc/%d/%s has no %s", p, file, name)
	}
	return strconv.ParseInt(fields[0], 10, 64)
}
