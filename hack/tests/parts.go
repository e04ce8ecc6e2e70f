package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// quick is the part that make test runs. The others are those of make test-all.
const quick = "quick"

// A part is what one machine does at a time.
type part struct {
	Name string `json:"name"`
	// What says in a line what the part shows.
	What string `json:"what"`
	// Minutes is what CI plans for it, on 2 cores.
	Minutes int    `json:"minutes"`
	Steps   []step `json:"steps"`
}

// A step is a target of the Makefile, or one go test.
type step struct {
	Make string `json:"make,omitempty"`
	// Module is the directory of another module than the main one.
	Module   string   `json:"module,omitempty"`
	Packages []string `json:"packages,omitempty"`
	// Except are packages, among these, that are left out.
	Except []string `json:"except,omitempty"`
	// Run and Skip are what go test takes under these names. They choose among whole
	// tests: what they say of subtests does not count for TestEveryTestIsInAPart.
	Run  string `json:"run,omitempty"`
	Skip string `json:"skip,omitempty"`
	// Race builds with the race detector.
	Race bool `json:"race,omitempty"`
	// Share hands one control plane to all packages.
	Share bool `json:"share,omitempty"`
	// AtOnce is how many packages are tested at the same time, 2 by default.
	AtOnce int `json:"atOnce,omitempty"`
	// Parallel is how many tests of a package run at the same time, if they may.
	Parallel int `json:"parallel,omitempty"`
	// Args are flags of the tests.
	Args []string `json:"args,omitempty"`
	// Fresh has the tests run even if go has their result.
	Fresh bool `json:"fresh,omitempty"`
	// Cluster is a file of bin that the tests run for janus-cluster: the control plane of another
	// version of Kubernetes.
	Cluster string `json:"cluster,omitempty"`
	// Emulate is a version of Kubernetes to whose API and features the control plane keeps.
	Emulate string `json:"emulate,omitempty"`
	// Minutes bound what a package may take, 40 by default.
	Minutes int `json:"minutes,omitempty"`
}

// load reads and checks the parts.
func load(path string) ([]part, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var parts []part
	if err := yaml.UnmarshalStrict(content, &parts); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return parts, check(parts)
}

func check(parts []part) error {
	var errs []error
	names := map[string]bool{}
	for _, p := range parts {
		if names[p.Name] {
			errs = append(errs, fmt.Errorf("part %s is there twice", p.Name))
		}
		names[p.Name] = true
		if p.Name == "" || p.What == "" || p.Minutes <= 0 || len(p.Steps) == 0 {
			errs = append(errs, fmt.Errorf("part %q needs a name, what it shows, minutes and steps", p.Name))
		}
		for _, s := range p.Steps {
			if (s.Make == "") == (len(s.Packages) == 0) {
				errs = append(errs, fmt.Errorf("a step of part %s needs a target or packages, and not both", p.Name))
			}
			if s.Share && (s.Cluster != "" || s.Emulate != "") {
				errs = append(errs, fmt.Errorf("a step of part %s can't share a control plane of another version", p.Name))
			}
		}
	}
	if !names[quick] {
		errs = append(errs, fmt.Errorf("there is no part %s", quick))
	}
	return errors.Join(errs...)
}

// pick returns the parts of some names, in the order of the names.
func pick(parts []part, names []string) ([]part, error) {
	var out []part
	for _, name := range names {
		i := slices.IndexFunc(parts, func(p part) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no part %q; go run ./hack/tests list names them", name)
		}
		out = append(out, parts[i])
	}
	return out, nil
}

// all returns the parts of make test-all.
func all(parts []part) []part {
	return slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return p.Name == quick })
}

// takes reports whether the step tests the package of a directory, relative to its module.
func (s step) takes(dir string) bool {
	of := func(pattern string) bool { return matches(pattern, dir) }
	return slices.ContainsFunc(s.Packages, of) && !slices.ContainsFunc(s.Except, of)
}

// matches reports whether a pattern of packages has a directory.
func matches(pattern, dir string) bool {
	pattern = path.Clean(strings.TrimPrefix(pattern, "./"))
	below, recursive := strings.CutSuffix(pattern, "...")
	below = strings.TrimSuffix(below, "/")
	if recursive {
		return below == "" || below == "." || dir == below || strings.HasPrefix(dir, below+"/")
	}
	return dir == pattern
}
