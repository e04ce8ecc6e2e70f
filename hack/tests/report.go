package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// event is a line of go test -json.
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// A report reads what go test tells and says the little that a person needs to know.
type report struct {
	out io.Writer
	// logs is the directory for all that was printed.
	logs     string
	packages map[string]*packageReport
	// built is what the compiler has said, by package.
	built map[string][]string
	// times are of all packages that are done, and of their tests.
	times  []timed
	failed int
	passed int
}

type packageReport struct {
	log     *os.File
	tests   int
	outputs map[string][]string
	bad     []string
	skipped []string
}

// timed is what a package or a test has taken.
type timed struct {
	Package string  `json:"package"`
	Test    string  `json:"test,omitempty"`
	Seconds float64 `json:"seconds"`
	Cached  bool    `json:"cached,omitempty"`
}

func newReport(out io.Writer, logs string) *report {
	return &report{out: out, logs: logs, packages: map[string]*packageReport{}, built: map[string][]string{}}
}

// read reads all events.
func (r *report) read(stream io.Reader) error {
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			if err := r.line(line); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) line(line string) error {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		// What go says beside the events, such as that a module cannot be downloaded.
		_, err := fmt.Fprint(r.out, line)
		return err
	}
	if e.Action == "build-output" {
		r.built[e.ImportPath] = append(r.built[e.ImportPath], e.Output)
		return nil
	}
	if e.Package == "" {
		return nil
	}
	p, err := r.of(e.Package)
	if err != nil {
		return err
	}
	switch e.Action {
	case "output":
		p.outputs[e.Test] = append(p.outputs[e.Test], e.Output)
		_, err = p.log.WriteString(e.Output)
		return err
	case "pass", "fail", "skip":
		if e.Test != "" {
			r.ended(p, e)
			return nil
		}
		return r.done(p, e)
	}
	return nil
}

func (r *report) of(name string) (*packageReport, error) {
	if p := r.packages[name]; p != nil {
		return p, nil
	}
	if err := os.MkdirAll(r.logs, 0o750); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(r.logs, strings.ReplaceAll(short(name), "/", "_")+".log"))
	if err != nil {
		return nil, err
	}
	p := &packageReport{log: log, outputs: map[string][]string{}}
	r.packages[name] = p
	return p, nil
}

// ended notes how a test has ended. What one that has passed has printed is in the log.
func (r *report) ended(p *packageReport, e event) {
	p.tests++
	r.times = append(r.times, timed{Package: short(e.Package), Test: e.Test, Seconds: e.Elapsed})
	switch e.Action {
	case "fail":
		p.bad = append(p.bad, e.Test)
	case "skip":
		p.skipped = append(p.skipped, e.Test)
	default:
		r.passed++
		delete(p.outputs, e.Test)
	}
}

// done tells of a package.
func (r *report) done(p *packageReport, e event) error {
	name := short(e.Package)
	if err := p.log.Close(); err != nil {
		return err
	}
	delete(r.packages, e.Package)
	if e.Action == "skip" { // It has no tests.
		return nil
	}
	cached := strings.Contains(strings.Join(p.outputs[""], ""), "(cached)")
	r.times = append(r.times, timed{Package: name, Seconds: e.Elapsed, Cached: cached})
	took := fmt.Sprintf("%7.1f s", e.Elapsed)
	if cached {
		took = "   cached"
	}
	verdict := "ok  "
	if e.Action == "fail" || len(p.skipped) > 0 {
		verdict = "FAIL"
		r.failed++
	}
	if _, err := fmt.Fprintf(r.out, "%s %-28s %s  %4d tests\n", verdict, name, took, p.tests); err != nil {
		return err
	}
	if verdict == "FAIL" {
		return r.explain(p, e)
	}
	return nil
}

// explain tells why a package has failed, in ten lines a test, and ten of the message of one.
func (r *report) explain(p *packageReport, e event) error {
	tell := func(what string, lines []string) {
		_, _ = fmt.Fprintf(r.out, "--- %s\n", what)
		for _, line := range gist(lines) {
			_, _ = fmt.Fprintf(r.out, "    %s\n", line)
		}
	}
	for _, test := range leaves(p.bad) {
		tell("FAIL: "+test, p.outputs[test])
	}
	for _, test := range p.skipped {
		tell("SKIPPED, which no part asks for: "+test, p.outputs[test])
	}
	if e.FailedBuild != "" {
		tell("it does not build", r.built[e.FailedBuild])
	} else if len(p.bad) == 0 && len(p.skipped) == 0 {
		tell("no test has failed, but the package has", slices.Concat(p.panicked(), p.outputs[""]))
	}
	_, err := fmt.Fprintf(r.out, "    all that it printed: %s\n", p.log.Name())
	return err
}

// panicked returns why the tests were given up, such as that their time was over, and which
// were running. go test -json counts that among the output of whichever test printed last.
func (p *packageReport) panicked() []string {
	for _, output := range p.outputs {
		from := slices.IndexFunc(output, func(line string) bool { return strings.HasPrefix(line, "panic: ") })
		if from < 0 {
			continue
		}
		why := output[from:]
		if end := slices.Index(why, "\n"); end >= 0 { // What follows are the stacks.
			why = why[:end]
		}
		return why
	}
	return nil
}

// leaves leaves out tests that have failed because of a subtest.
func leaves(tests []string) []string {
	return slices.DeleteFunc(slices.Clone(tests), func(test string) bool {
		return slices.ContainsFunc(tests, func(other string) bool { return strings.HasPrefix(other, test+"/") })
	})
}

// slowest returns the tests, or packages, that took longest.
func (r *report) slowest(n int, tests bool) []timed {
	times := slices.DeleteFunc(slices.Clone(r.times), func(t timed) bool {
		return (t.Test != "") != tests || strings.Contains(t.Test, "/")
	})
	slices.SortFunc(times, func(a, b timed) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return times[:min(n, len(times))]
}

// summary tells how many tests have passed, and what took longest.
func (r *report) summary(took time.Duration) {
	for _, t := range r.slowest(5, true) {
		if t.Seconds >= 10 {
			_, _ = fmt.Fprintf(r.out, "     %-28s %7.1f s  %s\n", t.Package, t.Seconds, t.Test)
		}
	}
	_, _ = fmt.Fprintf(r.out, "     %d tests have passed, %d packages have failed, in %s\n", r.passed, r.failed, took.Round(time.Second))
}

// short is the path of a package below the module.
func short(name string) string {
	const module = "janus.io/janus"
	if name == module {
		return "."
	}
	return strings.TrimPrefix(name, module+"/")
}
