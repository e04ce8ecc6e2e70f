package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
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

// kindAndGroup is what the schema of the chart's values demands, too. A resource, or a kind
// with its version, would name no kind, and so keep nothing secret.
var kindAndGroup = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*(\.[a-z0-9.-]+)?$`)

func (o options) checkSensitive() error {
	for _, kind := range o.sensitive {
		if !kindAndGroup.MatchString(kind) {
			return fmt.Errorf("--sensitive-kinds=%s: want Kind or Kind.group", kind)
		}
	}
	return nil
}

func (o options) sensitiveKinds() []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, kind := range o.sensitive {
		kinds = append(kinds, schema.ParseGroupKind(kind))
	}
	return kinds
}
