package sweep

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/harness"
)

var (
	update = flag.Bool("update", false, "write the table of docs/reference/kinds.md")
	// background is for what is done when the context of a test has ended.
	background = context.Background()
)

// outcome is how exactly a change was rolled back.
type outcome struct {
	step
	rollback, undo string
}

func (o outcome) String() string {
	if o.rollback == o.undo {
		return o.rollback
	}
	return o.rollback + "; undo " + o.undo
}

// row is what the table says of a kind.
type row struct {
	title, without string
	made           outcome
	steps          []outcome
}

func (r row) String() string {
	if r.without != "" {
		return fmt.Sprintf("| %s | not tried: %s | | | |\n", r.title, r.without)
	}
	change, deleted := r.steps[0], r.steps[len(r.steps)-1]
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", r.title, r.made, change, patches(r.steps[1:len(r.steps)-1]), deleted)
}

// patches tells of all Patches, those alike together. Labels and annotations, which are patched
// of every kind, are named only where something is to be said of them.
func patches(some []outcome) string {
	var order []string
	fields := map[string][]string{}
	for _, o := range some {
		how, field := o.String(), "`"+o.name+"`"
		if fields[how] == nil {
			order, fields[how] = append(order, how), []string{}
		}
		if how == exact && strings.HasPrefix(o.name, "metadata.") || slices.Contains(fields[how], field) {
			continue
		}
		fields[how] = append(fields[how], field)
	}
	var out []string
	for _, how := range order {
		out = append(out, strings.TrimSuffix(how+": "+strings.Join(fields[how], ", "), ": "))
	}
	return strings.Join(out, "; ")
}

const begin, end = "<!-- The sweep begins -->\n", "<!-- The sweep ends -->\n"

// documented compares the table with that of the page, or writes it there.
func documented(t *testing.T, rows []row) {
	t.Helper()
	path := filepath.Join(harness.Root(), "docs", "reference", "kinds.md")
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	head, rest, found := strings.Cut(string(page), begin)
	require.True(t, found, "%s has no place for the table", path)
	table, tail, found := strings.Cut(rest, end)
	require.True(t, found, "%s has no end of the table", path)
	now := "\n| kind | Create | Update | Patch | Delete |\n|---|---|---|---|---|\n"
	for _, r := range rows {
		now += r.String()
	}
	now += "\n"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(head+begin+now+end+tail), 0o600)) //nolint:gosec // G703: it is the page that was read.
		return
	}
	assert.Equal(t, table, now, "go test ./test/e2e/sweep -update writes the table anew")
}
