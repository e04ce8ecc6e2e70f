package testcluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStopLeavesNothing(t *testing.T) {
	c := start(t, Options{ControllerManager: true})
	// The supervisor, etcd, the API server and the controller manager.
	if running := processesOf(t, c.dir); len(running) != 4 {
		t.Fatalf("running are %q, want 4 processes", running)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := noneLeft(t, c.dir)(t.Context()); err != nil {
		t.Error(err)
	}
	if err := gone(c.dir)(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("the second Stop: %v", err)
	}
	if err := c.Err(); !errors.Is(err, errEnded) {
		t.Errorf("Err after Stop is %v", err)
	}
}

func TestKilledSupervisorLeavesNoProcess(t *testing.T) {
	c := start(t, Options{ControllerManager: true})
	if err := c.Signal(Supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, noneLeft(t, c.dir))
	if err := c.Stop(); err == nil {
		t.Error("Stop does not report the death of the supervisor")
	}
	if err := gone(c.dir)(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestKilledTestProcessLeavesNothing(t *testing.T) {
	cmd := exec.Command(os.Args[0]) //nolint:gosec // this test binary itself
	cmd.Env = append(os.Environ(), helperMode+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the helper did not start its cluster: %v", err)
	}
	dir := strings.TrimSpace(line)
	if len(processesOf(t, dir)) == 0 {
		t.Fatal("the helper runs no cluster")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	within(t, 15*time.Second, noneLeft(t, dir))
	within(t, 5*time.Second, gone(dir))
}

func TestDeadComponentEndsTheClusterAndIsNamed(t *testing.T) {
	c := start(t, Options{})
	if err := c.Signal(Etcd, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, noneLeft(t, c.dir))
	err := c.Stop()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(err.Error(), "etcd ended by itself (signal: killed)") {
		t.Errorf("Stop returned %v", err)
	}
}

func TestKilledComponentsAreRestartedOnRequest(t *testing.T) {
	c := start(t, Options{ControllerManager: true, RestartKilled: true})
	path := createConfigMap(t, c, "default", "survivor")
	for _, component := range []string{Etcd, APIServer, ControllerManager} {
		before, err := c.PID(component)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Signal(component, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		within(t, time.Minute, func(ctx context.Context) error {
			after, err := c.PID(component)
			if err != nil {
				return err
			}
			if after == before {
				return fmt.Errorf("%s has not been started again", component)
			}
			if err := c.call(ctx, http.MethodGet, "/readyz", nil, nil); err != nil {
				return err
			}
			return c.call(ctx, http.MethodGet, path, nil, nil)
		})
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}

func TestStartSaysWhyThereIsNoCluster(t *testing.T) {
	script := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho no room on the disk >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(clusterBinary.override, script)
	_, err := Start(Options{})
	if err == nil || !strings.Contains(err.Error(), "no room on the disk") {
		t.Errorf("got %v, want what the binary said", err)
	}
	t.Setenv(clusterBinary.override, filepath.Join(t.TempDir(), "missing"))
	if _, err := Start(Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want a missing file", err)
	}
}

func TestTestsWithoutAClusterFail(t *testing.T) {
	t.Setenv(clusterBinary.override, filepath.Join(t.TempDir(), "missing"))
	t.Setenv(OfferVariable, "") // The control plane of all packages would do.
	var h holder
	if _, err := h.get(); err == nil {
		t.Error("a package that does not call Main gets a cluster")
	}
	h.configure(Options{})
	for range 2 {
		if _, err := h.get(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v, want a missing file", err)
		}
	}
	if err := h.stop(); err != nil {
		t.Error(err)
	}
}
