package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

func parts(t *testing.T) []part {
	t.Helper()
	parts, err := load("parts.yaml")
	require.NoError(t, err)
	return parts
}

// A test that is in no part would never be run again, and nobody would notice.
func TestEveryTestIsInAPart(t *testing.T) {
	parts := all(parts(t))
	found := 0
	for _, module := range modules(t) {
		for dir, tests := range testsOf(t, module) {
			for _, test := range tests {
				found++
				assert.True(t, slices.ContainsFunc(parts, func(p part) bool { return p.has(module, dir, test) }),
					"%s of %s is in no part of make test-all: see hack/tests/parts.yaml", test, path.Join(module, dir))
			}
		}
	}
	assert.Greater(t, found, 1200, "the tests are looked for in the wrong place")
}

// has reports whether the part runs a test.
func (p part) has(module, dir, test string) bool {
	return slices.ContainsFunc(p.Steps, func(s step) bool {
		return s.Make == "" && s.Module == module &&
			s.takes(dir) &&
			(s.Run == "" || whole(s.Run).MatchString(test)) &&
			(s.Skip == "" || !whole(s.Skip).MatchString(test))
	})
}

// whole is the part of a pattern that is about tests, and not about their subtests.
func whole(pattern string) *regexp.Regexp {
	var out []string
	for alternative := range strings.SplitSeq(pattern, "|") {
		name, _, _ := strings.Cut(alternative, "/")
		out = append(out, name)
	}
	return regexp.MustCompile(strings.Join(out, "|"))
}

// modules lists the modules of the repository that have tests, by directory; the main one
// is "".
func modules(t *testing.T) []string {
	t.Helper()
	out := []string{""}
	found, err := filepath.Glob(filepath.Join(root, "hack", "*", "go.mod"))
	require.NoError(t, err)
	for _, file := range found {
		module := "hack/" + filepath.Base(filepath.Dir(file))
		if len(testsOf(t, module)) > 0 {
			out = append(out, module)
		}
	}
	return out
}

// testsOf returns the names of the tests of a module, by directory below it.
func testsOf(t *testing.T, module string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	top := filepath.Join(root, module)
	err := filepath.WalkDir(top, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && file != top {
			_, err := os.Stat(filepath.Join(file, "go.mod"))
			if err == nil || strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "dist" || entry.Name() == "bin" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		tests, err := testsIn(file)
		dir, _ := filepath.Rel(top, filepath.Dir(file))
		out[filepath.ToSlash(dir)] = append(out[filepath.ToSlash(dir)], tests...)
		return err
	})
	require.NoError(t, err)
	return out
}

// testsIn returns the names of the tests and fuzz targets in a file.
func testsIn(file string) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || f.Name.Name == "TestMain" {
			continue
		}
		if name := f.Name.Name; strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example") {
			out = append(out, name)
		}
	}
	return out, nil
}

// What a step names has to be there: a name that was changed would be left out in silence.
func TestEveryNameInAPartIsThatOfATest(t *testing.T) {
	for _, p := range parts(t) {
		for i, s := range p.Steps {
			if s.Make != "" {
				continue
			}
			tests := testsOf(t, s.Module)
			for _, pattern := range slices.Concat(s.Packages, s.Except) {
				assert.True(t, anyDir(tests, func(dir string) bool { return matches(pattern, dir) }), "step %d of part %s: no package with tests is %s", i+1, p.Name, pattern)
			}
			for name := range strings.SplitSeq(s.Run+"|"+s.Skip, "|") {
				one := whole(name)
				named := false
				for dir, names := range tests {
					named = named || s.takes(dir) && slices.ContainsFunc(names, one.MatchString)
				}
				assert.True(t, name == "" || named, "step %d of part %s: no test of its packages is named %s", i+1, p.Name, name)
			}
		}
	}
}

func anyDir(tests map[string][]string, holds func(dir string) bool) bool {
	for dir := range tests {
		if holds(dir) {
			return true
		}
	}
	return false
}

// Whatever the number of a run, it does something, fits into its time, and twelve in a row do
// all.
func TestTwelveRunsOfCIInARowDoEveryPart(t *testing.T) {
	const minutes = 40
	parts := parts(t)
	for first := range 25 {
		done := map[string]bool{}
		for run := first; run < first+rounds; run++ {
			chosen := turn(parts, run, minutes)
			assert.NotEmpty(t, chosen, "run %d", run)
			spent := 0
			for _, p := range chosen {
				done[p.Name] = true
				spent += p.Minutes
			}
			assert.LessOrEqual(t, spent, minutes, "run %d", run)
		}
		for _, p := range all(parts) {
			assert.True(t, done[p.Name], "part %s has no turn in the twelve runs from %d on", p.Name, first)
		}
	}
}

// A version of Kubernetes that nothing is tested on would be a promise without proof.
func TestEachVersionOfKubernetesIsTested(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "support.md"))
	require.NoError(t, err)
	var made []string
	files, err := filepath.Glob(filepath.Join(root, "hack", "cluster", "versions", "*.mod"))
	require.NoError(t, err)
	for _, file := range files {
		made = append(made, "janus-cluster-"+strings.TrimSuffix(filepath.Base(file), ".mod"))
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		version := regexp.MustCompile(`\tk8s\.io/kubernetes v(\S+)`).FindSubmatch(content)
		require.NotNil(t, version, file)
		assert.Contains(t, string(page), "| "+string(version[1])+" |", "%s is of a version that the page does not have", file)
	}
	versions, err := pick(parts(t), []string{"versions"})
	require.NoError(t, err)
	ran, names := map[string][]step{}, []string{}
	for _, s := range versions[0].Steps {
		if s.Cluster != "" {
			names = append(names, s.Cluster)
			assert.Contains(t, versions[0].Steps, step{Make: "bin/" + s.Cluster}, "it is built first")
		}
		if s.Emulate != "" {
			assert.Contains(t, string(page), "| "+s.Emulate+" |")
		}
		if s.Make == "" {
			of := s.Cluster + s.Emulate
			s.Cluster, s.Emulate = "", ""
			ran[of] = append(ran[of], s)
		}
	}
	slices.Sort(names)
	assert.Equal(t, made, slices.Compact(names))
	for of, steps := range ran {
		assert.Equal(t, ran["1.33"], steps, "%s is tested like the others", of)
	}
}

func TestAPatternOfPackages(t *testing.T) {
	for _, c := range []struct {
		pattern, dir string
		want         bool
	}{
		{"./e2e", "e2e", true},
		{"./e2e", "e2e/faults", false},
		{"./e2e/...", "e2e/faults", true},
		{"./e2e/...", "e2e", true},
		{"./e2e/...", "e2ex", false},
		{"./...", "engine", true},
		{".", ".", true},
	} {
		assert.Equal(t, c.want, matches(c.pattern, c.dir), "%s and %s", c.pattern, c.dir)
	}
}

func TestPartsThatMakeNoSenseAreRefused(t *testing.T) {
	good := part{Name: quick, What: "all", Minutes: 1, Steps: []step{{Make: "lint"}}}
	require.NoError(t, check([]part{good}))
	for name, bad := range map[string][]part{
		"no quick part":               {{Name: "e2e", What: "all", Minutes: 1, Steps: good.Steps}},
		"twice the same name":         {good, good},
		"no steps":                    {good, {Name: "e2e", What: "all", Minutes: 1}},
		"no minutes":                  {good, {Name: "e2e", What: "all", Steps: good.Steps}},
		"neither target nor packages": {good, {Name: "e2e", What: "all", Minutes: 1, Steps: []step{{}}}},
		"another version is shared":   {good, {Name: "e2e", What: "all", Minutes: 1, Steps: []step{{Packages: []string{"./e2e"}, Share: true, Emulate: "1.33"}}}},
		"both":                        {good, {Name: "e2e", What: "all", Minutes: 1, Steps: []step{{Make: "lint", Packages: []string{"./e2e"}}}}},
	} {
		assert.Error(t, check(bad), name)
	}
}
