package protocol

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

//go:embed saga.pml trace.pml trace.h
var sources embed.FS

// write puts the model into a directory.
func write(dir string) error {
	for _, name := range []string{"saga.pml", "trace.pml", "trace.h"} {
		content, err := sources.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Model is saga.pml, built to say of traces whether they are those of one of its runs.
type Model struct{ dir string }

// traced has the model take from the trace what is a constant in a configuration.
var traced = []string{
	"-DTRACE", "-DKIND0=kinds[0]", "-DKIND1=kinds[1]", "-DWINDOW=window", "-DPROCESSES=processes", "-DOVERDUE=overdue", "-DFOREIGN=foreign",
	"-DCRASHES=0", "-DLOST=0", "-DLATE=0", "-DDENIED=0", "-DWAITS=0",
}

// Build builds the model in a directory. It needs spin and a C compiler.
func Build(ctx context.Context, dir string) (*Model, error) {
	if err := write(dir); err != nil {
		return nil, err
	}
	for _, command := range [][]string{
		append(append([]string{"spin"}, traced...), "-o3", "-a", "saga.pml"),
		{"cc", "-O1", "-w", "-DSAFETY", "-DNOREDUCE", "-DCOLLAPSE", "-DVECTORSZ=4096", "-DMEMLIM=1000", "-o", "pan", "pan.c"},
	} {
		if _, err := run(ctx, dir, command...); err != nil {
			return nil, err
		}
	}
	return &Model{dir}, nil
}

// Verdict says whether the model has a run with a trace.
type Verdict struct {
	// Events is how many events of the trace the model has a run with, of so many.
	Events, Of int
}

// Accepted reports whether it has one with all of them.
func (v Verdict) Accepted() bool { return v.Events == v.Of }

// Judge asks whether the model has runs with traces. Covered says of the lines of the model that do
// something whether one of the runs that were found comes there, by what they are.
func (m *Model) Judge(ctx context.Context, traces []Trace) (verdicts []Verdict, covered map[string]bool, err error) {
	if err := os.WriteFile(filepath.Join(m.dir, "traces"), []byte(text(traces)), 0o600); err != nil {
		return nil, nil, err
	}
	out, err := run(ctx, m.dir, "./pan", "-E", "-n", "-m1000000", "-w22")
	if err != nil {
		return nil, nil, err
	}
	for _, found := range verdictOf.FindAllStringSubmatch(out, -1) {
		var v Verdict
		v.Events, _ = strconv.Atoi(found[1])
		v.Of, _ = strconv.Atoi(found[2])
		verdicts = append(verdicts, v)
	}
	if len(verdicts) != len(traces) || strings.Contains(out, "max search depth too small") || !strings.Contains(out, "errors: 0\n") {
		return nil, nil, fmt.Errorf("judge traces: %s", out)
	}
	lines, err := m.lines(ctx)
	if err != nil {
		return nil, nil, err
	}
	covered = map[string]bool{}
	for transition, line := range lines { // several have the same line
		covered[line] = covered[line] || strings.Contains(out, "\non a run: "+transition+"\n")
	}
	return verdicts, covered, nil
}

var (
	verdictOf  = regexp.MustCompile(`(?m)^trace \d+: (\d+) of (\d+)$`)
	transition = regexp.MustCompile(`\[id +(\d+) .* saga\.pml:(\d+) =>`)
)

// lines says of the numbers of transitions what the line of saga.pml is that each is at.
func (m *Model) lines(ctx context.Context) (map[string]string, error) {
	out, err := run(ctx, m.dir, "./pan", "-d")
	if err != nil {
		return nil, err
	}
	content, err := sources.ReadFile("saga.pml")
	if err != nil {
		return nil, err
	}
	text, lines := strings.Split(string(content), "\n"), map[string]string{}
	for _, found := range transition.FindAllStringSubmatch(out, -1) {
		n, err := strconv.Atoi(found[2])
		if err != nil {
			return nil, err
		}
		if line := strings.TrimSpace(text[n-1]); line != "" && !strings.HasPrefix(line, "#") {
			lines[found[1]] = line
		}
	}
	return lines, nil
}

// text is what trace.h reads.
func text(traces []Trace) string {
	var out strings.Builder
	fmt.Fprintln(&out, len(traces))
	for _, t := range traces {
		s := t.setting
		fmt.Fprintln(&out, s.kinds[0], s.kinds[1], s.window, s.processes, s.crashes, s.lost, s.late, s.denied, s.waits, s.foreign, s.overdue, s.writer, len(t.Events))
		for _, e := range t.Events {
			fmt.Fprintln(&out, e.What, e.By, e.Item, e.UID, e.Value, e.Manager, e.Phase, e.State0, e.State1, e.Kept)
		}
	}
	return out.String()
}

func run(ctx context.Context, dir string, command ...string) (string, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s (make spin installs spin from Debian): %w\n%s", strings.Join(command, " "), err, &out)
	}
	return out.String(), nil
}
