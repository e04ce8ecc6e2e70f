package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A finding is a vulnerability of something that the programs are built of.
type finding struct {
	id, module, version string
	// fixed is the first version without it, or empty.
	fixed string
	// aliases are other names of it, such as a CVE.
	aliases []string
	// imported says that a package with the vulnerability is built in; called, that a function is
	// called which has it.
	imported, called bool
}

// message is a part of govulncheck's output.
type message struct {
	OSV *struct {
		ID      string
		Aliases []string
	}
	Finding *struct {
		OSV          string
		FixedVersion string `json:"fixed_version"`
		Trace        []struct{ Module, Version, Package, Function string }
	}
}

// read reads what govulncheck has found, in the order of the ids.
func read(output io.Reader) ([]finding, error) {
	found := map[string]*finding{}
	aliases := map[string][]string{}
	messages := json.NewDecoder(output)
	for {
		var m message
		err := messages.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the output of govulncheck: %w", err)
		}
		if m.OSV != nil {
			aliases[m.OSV.ID] = m.OSV.Aliases
		}
		if m.Finding == nil || len(m.Finding.Trace) == 0 {
			continue
		}
		at := m.Finding.Trace[0]
		f := found[m.Finding.OSV]
		if f == nil {
			f = &finding{id: m.Finding.OSV, module: at.Module, version: at.Version, fixed: m.Finding.FixedVersion}
			found[f.id] = f
		}
		f.imported = f.imported || at.Package != ""
		f.called = f.called || at.Function != ""
	}
	var out []finding
	for id, f := range found {
		f.aliases = aliases[id]
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b finding) int { return strings.Compare(a.id, b.id) })
	return out, nil
}

// divide divides findings into those in modules and those in Go's standard library. What is
// there depends on who builds, and the next build with a newer Go is without it.
func divide(all []finding) (modules, std []finding) {
	for _, f := range all {
		if f.module == "stdlib" {
			std = append(std, f)
		} else {
			modules = append(modules, f)
		}
	}
	return modules, std
}

// newerGo reports what may be called in Go's standard library that a newer Go has fixed.
func newerGo(std []finding) error {
	var called []string
	for _, f := range std {
		if f.called {
			called = append(called, f.id+" (fixed in "+strings.TrimPrefix(f.fixed, "v")+")")
		}
	}
	if len(called) == 0 {
		return nil
	}
	return fmt.Errorf("standard library of Go %s: %d known vulnerabilities in functions that may be called, so build what is released with a newer one: %s",
		strings.TrimPrefix(std[0].version, "v"), len(called), strings.Join(called, ", "))
}
