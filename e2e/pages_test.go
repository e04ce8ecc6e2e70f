package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/internal/janustest"
	"janus.io/janus/internal/testcluster"
)

// TestThePageAboutSuspendingIsAsItIs runs docs/suspend-and-cancel.md.
func TestThePageAboutSuspendingIsAsItIs(t *testing.T) {
	t.Parallel()
	e := janustest.New(t)
	e.Start()
	runPage(t, e, "suspend-and-cancel.md")
	e.NothingLeft("release")
}

// TestThePageAboutPlansIsAsItIs runs docs/plan.md.
func TestThePageAboutPlansIsAsItIs(t *testing.T) {
	t.Parallel()
	e := janustest.New(t)
	e.Start()
	runPage(t, e, "plan.md")
	e.NothingLeft("release-plan")
	e.NothingLeft("wrong")
}

// runPage types the commands of a page of the documentation, and compares what is printed
// with what the page says.
func runPage(t *testing.T, e *janustest.Env, page string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(janustest.Root(), "docs", page))
	require.NoError(t, err)
	shell, err := testcluster.Shared(t).NewShell(e.Namespace, janustest.Root())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, shell.Close()) })

	steps := stepsOf(string(text))
	require.NotEmpty(t, steps)
	for _, step := range steps {
		printed, err := shell.Run(t.Context(), step.command)
		require.NoError(t, err, printed)
		printed = strings.ReplaceAll(printed, e.Namespace, "shop")
		require.Regexp(t, step.pattern(), plainText(printed), "$ %s", step.command)
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

func TestThePagesAreReadAsTheyAreMeant(t *testing.T) {
	steps := stepsOf("text\n```console\n$ kubectl get txn\nNAME   AGE\na      5s\n$ true\n```\n```sh\n$ not this\n```\n")
	assert.Equal(t, []step{{"kubectl get txn", "NAME   AGE\na      5s\n"}, {"true", ""}}, steps)
	assert.Regexp(t, steps[0].pattern(), plainText("NAME   AGE\na      1m12s  \n"))
	assert.NotRegexp(t, steps[0].pattern(), plainText("NAME   AGE\nb      5s\n"))
	assert.Regexp(t, step{prints: "[…]is (held)[…]"}.pattern(), "the lock is (held) by b")
	assert.NotRegexp(t, steps[1].pattern(), "something")
}
