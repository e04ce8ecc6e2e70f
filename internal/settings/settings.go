package settings

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Name is the name of the ConfigMap.
const Name = "janus-settings"

// sensitiveKinds is the key of the kinds whose content is confidential, as Kind or Kind.group,
// separated by commas.
const sensitiveKinds = "sensitiveKinds"

// locks is the key of how locks are kept. Without it there is a Lease for each target.
const locks = "locks"

// How locks are kept.
const (
	LeaseOfTarget    = "targets"    // a Lease for each target
	LeaseOfNamespace = "namespaces" // one Lease for each namespace
)

// Settings are what is told.
type Settings struct {
	// SensitiveKinds are those that janusd takes for confidential besides Secret.
	SensitiveKinds []schema.GroupKind
	// Locks is how locks are kept; empty is what an earlier janusd tells, which has a Lease for each
	// target.
	Locks string
}

// Data is what the ConfigMap holds.
func (s Settings) Data() map[string]string {
	var kinds []string
	for _, kind := range s.SensitiveKinds {
		kinds = append(kinds, kind.String())
	}
	data := map[string]string{sensitiveKinds: strings.Join(kinds, ",")}
	if s.Locks != "" {
		data[locks] = s.Locks
	}
	return data
}

// Of reads what the ConfigMap holds.
func Of(data map[string]string) (Settings, error) {
	text, found := data[sensitiveKinds]
	if !found {
		return Settings{}, errors.New("it has no key " + sensitiveKinds)
	}
	s := Settings{Locks: data[locks]}
	if text == "" {
		return s, nil
	}
	kinds, err := ParseKinds(strings.Split(text, ","))
	if err != nil {
		return Settings{}, fmt.Errorf("its key %s: %w", sensitiveKinds, err)
	}
	s.SensitiveKinds = kinds
	return s, nil
}

// kindAndGroup is what the schema of the chart's values demands, too. A resource, or a kind
// with its version, would name no kind, and so keep nothing secret.
var kindAndGroup = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*(\.[a-z0-9.-]+)?$`)

// ParseKinds reads kinds that are written as Kind or Kind.group, with or without spaces around.
func ParseKinds(list []string) ([]schema.GroupKind, error) {
	var kinds []schema.GroupKind
	for _, text := range list {
		text = strings.TrimSpace(text)
		if !kindAndGroup.MatchString(text) {
			return nil, fmt.Errorf("want Kind or Kind.group, and not %q", text)
		}
		kinds = append(kinds, schema.ParseGroupKind(text))
	}
	return kinds, nil
}
