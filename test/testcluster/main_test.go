package testcluster

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// helperMode makes the test binary be a test process that is going to be
// killed: it starts a cluster, prints its directory and waits.
const helperMode = "JANUS_TESTCLUSTER_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperMode) != "" {
		os.Exit(beKilled())
	}
	os.Exit(Main(m, Options{ControllerManager: true, Audit: true, Alone: true}))
}

func beKilled() int {
	c, err := Start(Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = fmt.Fprintln(os.Stdout, c.dir)
	// The other end of standard input is held by the test that kills us.
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return 0
}

// within fails the test unless the condition becomes true in time. The error
// that the condition returns says what is still missing.
func within(t *testing.T, limit time.Duration, condition func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := condition(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %s: %v", limit, err)
		case <-ticker.C:
		}
	}
}

// start starts a cluster of the test's own.
func start(t *testing.T, options Options) *Cluster {
	t.Helper()
	c, err := Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	return c
}

// processesOf lists the processes that have the directory in an argument, as
// every component and the supervisor have.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // The process has ended since.
		}
		if strings.Contains(string(content), dir) {
			words := strings.Split(string(content), "\x00")
			found = append(found, fmt.Sprintf("%s %s %s", filepath.Base(filepath.Dir(file)), words[0], words[1]))
		}
	}
	return found
}

// noneLeft wants no process and no file of the cluster.
func noneLeft(t *testing.T, dir string) func(context.Context) error {
	return func(context.Context) error {
		if left := processesOf(t, dir); len(left) > 0 {
			return fmt.Errorf("processes are left: %q", left)
		}
		return nil
	}
}

// gone wants the file or directory not to exist.
func gone(path string) func(context.Context) error {
	return func(context.Context) error {
		present, err := exists(path)
		if err == nil && present {
			err = fmt.Errorf("%s is left", path)
		}
		return err
	}
}
