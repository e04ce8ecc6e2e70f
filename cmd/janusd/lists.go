package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// namespaces gives what --watch-namespaces names, each once: whoever watches a namespace
// twice counts its Transactions twice. An empty name is refused, above all: to a client it
// means all namespaces.
func namespaces(listed []string) ([]string, error) {
	given := strings.Join(listed, ",")
	if len(listed) == 0 {
		listed = []string{""}
	}
	names := make([]string, 0, len(listed))
	for _, name := range listed {
		name = strings.TrimSpace(name)
		if len(validation.IsDNS1123Label(name)) > 0 {
			return nil, fmt.Errorf("--watch-namespaces=%s: %q is no name of a namespace", given, name)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
