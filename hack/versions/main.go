// Command versions gives the CRD of Transactions its second version, in place: the one that
// controller-gen has made, under another name, served and not stored. docs/adr/0055 says why both
// have one schema.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// The lines of a version that differ in the other one.
const (
	nameOfFirst, nameOfSecond = "\n    name: v1alpha1\n", "\n    name: v1beta1\n"
	stored, notStored         = "\n    storage: true\n", "\n    storage: false\n"
)

var errNotOne = errors.New("it has not one version, stored as v1alpha1, at its end")

func main() {
	for _, path := range os.Args[1:] {
		if err := serveFile(path); err != nil {
			_, _ = fmt.Fprintf(os.Stderr, "versions: %s: %v\n", path, err)
			os.Exit(1)
		}
	}
}

func serveFile(path string) error {
	text, err := os.ReadFile(path) //nolint:gosec // the Makefile names it
	if err != nil {
		return err
	}
	both, err := serve(string(text))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(both), 0o600) //nolint:gosec // it is the file that was read
}

// serve repeats the only version of a CRD below it. The version is the last thing in the file.
func serve(text string) (string, error) {
	_, version, found := strings.Cut(text, "\n  versions:\n")
	if !found || strings.Count("\n"+version, "\n  - ") != 1 || strings.Contains("\n"+version, "\nstatus:") {
		return "", errNotOne
	}
	for _, line := range []string{nameOfFirst, stored} {
		if strings.Count(version, line) != 1 {
			return "", errNotOne
		}
	}
	second := strings.Replace(version, nameOfFirst, nameOfSecond, 1)
	return text + strings.Replace(second, stored, notStored, 1), nil
}
