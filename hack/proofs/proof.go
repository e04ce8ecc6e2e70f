package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// A proof is a run of tests that is cut into slices.
type proof struct {
	Name string `json:"name"`
	What string `json:"what"`
	// Unit is what Done counts, such as seeds.
	Unit   string `json:"unit"`
	Slices int    `json:"slices"`
	// Each is how many of them a slice has, where they are numbered, and Start is the first number.
	Each  int `json:"each,omitempty"`
	Start int `json:"start,omitempty"`
	// Run are the package and the flags of go test.
	Run []string `json:"run"`
	// Done matches what a slice prints once it has passed; its one group is how many passed.
	Done string `json:"done"`
}

// load reads the proofs.
func load(path string) ([]proof, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the proofs: %w", err)
	}
	var all []proof
	if err := yaml.UnmarshalStrict(content, &all); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return all, nil
}

// command is the go command that runs a slice.
func (p proof) command(slice int) []string {
	fill := strings.NewReplacer("{slices}", strconv.Itoa(p.Slices), "{slice}", strconv.Itoa(slice),
		"{each}", strconv.Itoa(p.Each), "{first}", strconv.Itoa(p.Start+slice*p.Each))
	out := []string{"test", "-count=1", "-v", "-timeout=24h"}
	for _, arg := range p.Run {
		out = append(out, fill.Replace(arg))
	}
	return out
}

// count says how many passed, by what a slice has printed. One that prints nothing of it has run nothing.
func (p proof) count(printed []byte) (int, error) {
	pattern, err := regexp.Compile(p.Done)
	if err != nil {
		return 0, fmt.Errorf("the pattern of %s: %w", p.Name, err)
	}
	if pattern.NumSubexp() != 1 {
		return 0, fmt.Errorf("the pattern of %s has %d groups, and one is wanted: %s", p.Name, pattern.NumSubexp(), p.Done)
	}
	matches := pattern.FindAllSubmatch(printed, -1)
	if len(matches) == 0 {
		return 0, fmt.Errorf("nothing that it printed says how many %s passed", p.Unit)
	}
	last := matches[len(matches)-1] // Those before tell how far it was.
	n, err := strconv.Atoi(string(last[1]))
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q says of no %s that they passed", last[0], p.Unit)
	}
	return n, nil
}
