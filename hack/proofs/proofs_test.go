package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// two are proofs of which the tests run slices.
var two = []proof{
	{Name: "seeds", What: "random Transactions", Unit: "seeds", Slices: 3, Each: 10, Start: 100, Run: []string{"./sim", "-seeds={each}", "-seed={first}"}, Done: `(\d+) of \d+ seeds, 0 failed`},
	{Name: "plans", What: "every fault", Unit: "plans", Slices: 2, Run: []string{"./faults", "-shard={slice}/{slices}"}, Done: `(\d+) plans`},
}

// desk is a session whose slices print what says gives them.
func desk(t *testing.T, says func(args string) (string, error)) *session {
	dir := t.TempDir()
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	return &session{
		path: filepath.Join(dir, "passed.yaml"), page: filepath.Join(dir, "proofs.md"), logs: filepath.Join(dir, "logs"),
		all: two, record: record{Version: "one"}, out: t.Output(), now: func() time.Time { at = at.Add(time.Minute); return at },
		run: func(_ context.Context, _ string, args []string, log string) error {
			text, err := says(strings.Join(args, " "))
			return errors.Join(err, os.WriteFile(log, []byte(text), 0o600))
		},
	}
}

func TestEachSliceIsRunOnce(t *testing.T) {
	t.Parallel()
	var ran []string
	s := desk(t, func(args string) (string, error) {
		ran = append(ran, strings.TrimPrefix(args, "test -count=1 -v -timeout=24h "))
		return "4 of 10 seeds, 0 failed\n10 of 10 seeds, 0 failed\n1234 plans", nil
	})
	require.NoError(t, s.proofs(t.Context(), nil))
	assert.Equal(t, []string{
		"./sim -seeds=10 -seed=100", "./sim -seeds=10 -seed=110", "./sim -seeds=10 -seed=120", "./faults -shard=0/2", "./faults -shard=1/2",
	}, ran)
	written, err := os.ReadFile(s.page)
	require.NoError(t, err)
	assert.Contains(t, string(written), "| seeds | random Transactions | 30 seeds | 3 of 3 | 0 h 03 min |\n| plans | every fault | 2,468 plans | 2 of 2 | 0 h 02 min |\n")
	assert.Contains(t, string(written), "Version `one`, run from 2026-11-01 to 2026-11-01")

	ran = nil
	s.record, err = open(s.path, "one", false)
	require.NoError(t, err)
	require.NoError(t, s.proofs(t.Context(), nil))
	assert.Empty(t, ran, "all have passed")
}

func TestWhatFailsIsNotRecordedAndHoldsNothingUp(t *testing.T) {
	t.Parallel()
	s := desk(t, func(args string) (string, error) {
		switch {
		case strings.Contains(args, "-seed=110"):
			return "9 of 10 seeds, 1 failed", errors.New("exit status 1")
		case strings.Contains(args, "-shard=0/2"):
			return "no tests to run", nil
		}
		return "10 of 10 seeds, 0 failed\n7 plans", nil
	})
	err := s.proofs(t.Context(), nil)
	require.EqualError(t, err, "failed: seeds 1, plans 0")
	var passed []string
	for _, r := range s.record.Results {
		passed = append(passed, fmt.Sprint(r.Proof, r.Slice))
	}
	assert.Equal(t, []string{"seeds0", "seeds2", "plans1"}, passed)
}

func TestTwoRunsSideBySideRecordWhatEitherHasPassed(t *testing.T) {
	t.Parallel()
	says := func(string) (string, error) { return "10 of 10 seeds, 0 failed\n7 plans", nil }
	one, other := desk(t, says), desk(t, says)
	other.path = one.path
	require.NoError(t, one.proofs(t.Context(), []string{"seeds"}))
	require.NoError(t, other.proofs(t.Context(), []string{"plans"}))
	written, err := open(one.path, "one", false)
	require.NoError(t, err)
	assert.Len(t, written.Results, 5)
}

func TestNoneBeginsWhenTheTimeIsOver(t *testing.T) {
	t.Parallel()
	n := 0
	s := desk(t, func(string) (string, error) { n++; return "7 plans", nil })
	s.until = s.now().Add(3 * time.Minute)
	require.NoError(t, s.proofs(t.Context(), []string{"plans"}))
	assert.Equal(t, 1, n)
	require.ErrorContains(t, s.proofs(t.Context(), []string{"plan"}), `there is no proof "plan"`)
}

func TestWhatWasRunOnOtherSourcesDoesNotCount(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "passed.yaml")
	r := record{Version: "one", Results: []result{{Proof: "plans", Slice: 1, Done: 7}}}
	require.NoError(t, r.save(path))
	_, err := open(path, "two", false)
	require.ErrorIs(t, err, errOtherVersion)
	fresh, err := open(path, "two", true)
	require.NoError(t, err)
	assert.Equal(t, record{Version: "two"}, fresh)
}

// Another line of code, and another version of a module, are another version; a test is not, and a comment
// only where the compiler reads it.
func TestTheVersionIsThatOfTheSources(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o600))
	}
	version := func() string {
		t.Helper()
		v, err := versionOf(t.Context(), root, []string{"./engine"})
		require.NoError(t, err)
		return v
	}
	write("go.mod", "module example.com/m\n\ngo 1.26\n")
	write("engine/engine.go", "package engine\n\nimport _ \"example.com/m/plan\"\n")
	write("plan/plan.go", "package plan\n")
	before := version()
	write("engine/engine_test.go", "package engine\n")
	write("page/page.go", "package page\n")
	assert.Equal(t, before, version())
	write("plan/plan.go", "// Package plan decides.\npackage plan // not how\n\n// That is all.\n")
	assert.Equal(t, before, version())
	write("plan/plan.go", "//go:debug panicnil=1\npackage plan\n")
	assert.NotEqual(t, before, version())
	write("plan/plan.go", "package plan\n\nconst n = 1\n")
	assert.NotEqual(t, before, version())
}

// What is committed is what the record makes, and each proof names tests that are there.
func TestThePageIsThatOfTheRecord(t *testing.T) {
	t.Parallel()
	all, err := load("proofs.yaml")
	require.NoError(t, err)
	for _, p := range all {
		_, err := p.count(nil)
		require.ErrorContains(t, err, "nothing that it printed", p.Name)
		test, _, _ := strings.Cut(strings.TrimPrefix(p.Run[1], "-run="), "$")
		found := false
		files, err := filepath.Glob(filepath.Join("..", "..", p.Run[0], "*_test.go"))
		require.NoError(t, err)
		for _, file := range files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			found = found || strings.Contains(string(content), "func "+test+"(t *testing.T)")
		}
		assert.True(t, found, "%s has no %s", p.Run[0], test)
	}
	written, err := os.ReadFile(filepath.Join("..", "..", "docs", "proofs.md"))
	if errors.Is(err, fs.ErrNotExist) {
		require.NoFileExists(t, "passed.yaml", "make proofs writes both")
		return
	}
	require.NoError(t, err)
	r, err := read("passed.yaml")
	require.NoError(t, err)
	assert.Equal(t, page(all, r), string(written), "make proofs writes it")
}
