package harness

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"

	"janus.io/janus/test/testcluster"
)

// RunPage types the commands of a page of the documentation, and compares what is printed
// with what the page says.
func (e *Env) RunPage(page string) {
	e.t.Helper()
	e.TypePage(e.Shell(), page)
}

// Shell makes a shell in the namespace of the test.
func (e *Env) Shell() *testcluster.Shell {
	e.t.Helper()
	shell, err := e.cluster.NewShell(e.Namespace, Root())
	require.NoError(e.t, err)
	e.t.Cleanup(func() { require.NoError(e.t, shell.Close()) })
	return shell
}

// TypePage is RunPage for a shell that the test has made ready.
func (e *Env) TypePage(shell *testcluster.Shell, page string) {
	e.t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(), "docs", page))
	require.NoError(e.t, err)
	steps := stepsOf(string(text))
	require.NotEmpty(e.t, steps)
	for _, step := range steps {
		printed, err := shell.Run(e.t.Context(), step.command)
		require.NoError(e.t, err, printed)
		printed = strings.ReplaceAll(printed, e.Namespace, "shop")
		require.Regexp(e.t, step.pattern(), plainText(printed), "$ %s", step.command)
	}
}

// A step is a command of a page, and what it is said to print.
type step struct {
	command, prints string
}

// stepsOf finds the commands in a page: in blocks of the kind console, the lines that
// begin with a dollar sign. What follows one is what it prints.
func stepsOf(page string) (steps []step) {
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(block[1]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				steps = append(steps, step{command: strings.TrimSpace(command)})
			} else if len(steps) > 0 {
				steps[len(steps)-1].prints += line
			}
		}
	}
	return steps
}

// pattern matches what a step prints: […] stands for anything.
func (s step) pattern() string {
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(plainText(s.prints)), `\[…\]`, "(?s:.*)") + "$"
}

var (
	age      = regexp.MustCompile(`(?m)[ \t]+([0-9]+[smh])+$`)
	trailing = regexp.MustCompile(`(?m)[ \t]+$`)
)

// plainText is without what differs from one time to the next: ages, and blanks at the
// end of a line.
func plainText(text string) string {
	return strings.TrimSpace(age.ReplaceAllString(trailing.ReplaceAllString(text, ""), " AGE"))
}
