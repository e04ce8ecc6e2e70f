package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"sigs.k8s.io/yaml"
)

// record is what has passed on one version.
type record struct {
	Version string   `json:"version"`
	Results []result `json:"results"`
}

// A result is a slice that has passed.
type result struct {
	Proof   string `json:"proof"`
	Slice   int    `json:"slice"`
	Done    int    `json:"done"`
	Seconds int    `json:"seconds"`
	// Date is the day on which it ended, as 2006-01-02.
	Date string `json:"date"`
}

// errOtherVersion says that what is recorded doesn't count for the sources as they are.
var errOtherVersion = errors.New("the sources have changed since what is recorded was run: -reset begins the record again")

// open reads the record of a version. There is none yet if the file is missing, or if it is to be
// reset.
func open(path, version string, reset bool) (record, error) {
	r, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || reset && err == nil:
		return record{Version: version}, nil
	case err != nil:
		return record{}, err
	case r.Version != version:
		return record{}, errOtherVersion
	}
	return r, nil
}

// read reads the record of whatever version it is.
func read(path string) (record, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return record{}, fmt.Errorf("read what has passed: %w", err)
	}
	var r record
	if err := yaml.UnmarshalStrict(content, &r); err != nil {
		return record{}, fmt.Errorf("read %s: %w", path, err)
	}
	return r, nil
}

// reload reads what has passed meanwhile, in another run beside this one.
func (r *record) reload(path string) error {
	found, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case found.Version == r.Version:
		*r = found
	}
	return nil
}

// has reports whether a slice has passed.
func (r *record) has(p proof, slice int) bool {
	for _, found := range r.Results {
		if found.Proof == p.Name && found.Slice == slice {
			return true
		}
	}
	return false
}

// save writes the record. One that is interrupted leaves the record as it was.
func (r *record) save(path string) error {
	content, err := yaml.Marshal(r)
	if err != nil {
		return fmt.Errorf("record what has passed: %w", err)
	}
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return fmt.Errorf("record what has passed: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("record what has passed: %w", err)
	}
	return nil
}
