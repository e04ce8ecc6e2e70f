package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"janus.io/janus/internal/settings"
)

// namespaces returns what --watch-namespaces names, each once: whoever watches a namespace
// twice counts its Transactions twice. An empty name is refused, above all: to a client it
// means all namespaces.
func namespaces(listed []string) ([]string, error) {
	given := strings.Join(listed, ",")
	if len(listed) == 0 {
		listed = []string{""}
	}
	names := trimmed(listed)
	for _, name := range names {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return nil, fmt.Errorf("--watch-namespaces=%s: %q is no name of a namespace", given, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// trimmed returns the items of a list without spaces around them.
func trimmed(list []string) []string {
	out := make([]string, 0, len(list))
	for _, item := range list {
		out = append(out, strings.TrimSpace(item))
	}
	return out
}

// sensitiveKinds are the kinds that --sensitive-kinds names.
func (o options) sensitiveKinds() ([]schema.GroupKind, error) {
	kinds, err := settings.ParseKinds(o.sensitive)
	if err != nil {
		return nil, fmt.Errorf("--sensitive-kinds=%s: %w", strings.Join(o.sensitive, ","), err)
	}
	return kinds, nil
}
