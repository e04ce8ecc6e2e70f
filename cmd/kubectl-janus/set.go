package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	api "janus.io/janus/api/v1alpha1"
)

// setLabel is the label of the Transactions that bring one set of manifests into effect, as it
// was over time.
const setLabel = "janus.io/set"

// checkSet refuses what cannot be the name of a set.
func checkSet(name string) error {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("--set=%s: want at most 63 lower-case letters, digits and -, with a letter or digit first and last", name)
	}
	return nil
}

// nameInSet is the name of a Transaction that brings a set into effect: the same for the same
// input, whether the objects exist or not.
func nameInSet(set string, prunes bool, spec *api.TransactionSpec) (string, error) {
	type change struct {
		Target  api.Target
		Deletes bool
		Content json.RawMessage
	}
	input := struct {
		Kind, Set string
		Prunes    bool
		Spec      api.TransactionSpec
		Changes   []change
	}{Kind: api.Kind.Kind, Set: set, Prunes: prunes, Spec: *spec}
	input.Spec.Changes = nil
	for _, c := range spec.Changes {
		one := change{Target: c.Target, Deletes: c.Type == api.Delete}
		if c.Content != nil {
			one.Content = c.Content.Raw
		}
		input.Changes = append(input.Changes, one)
	}
	text, err := json.Marshal(input)
	if err != nil {
		return "", fmt.Errorf("name the Transaction of set %s: %w", set, err)
	}
	sum := sha256.Sum256(text)
	return set + "-" + hex.EncodeToString(sum[:4]), nil
}

// inSet finds what has become of a draft in its set: the Transaction that has brought the same
// input into effect, or is about to, and is the last of the set. If there is none, it gives the
// draft a name that is free.
func (s *session) inSet(ctx context.Context, d draft) (*api.Transaction, error) {
	set := d.GetLabels()[setLabel]
	if set == "" {
		return nil, nil
	}
	known, _, err := s.list(ctx, d.GetNamespace(), metav1.ListOptions{LabelSelector: setLabel + "=" + set})
	if err != nil {
		return nil, err
	}
	known = slices.DeleteFunc(known, func(t *api.Transaction) bool { return t.Spec.DryRun })
	if len(known) > 0 {
		last := known[len(known)-1]
		failed := last.Status.Phase == api.PhaseFailed || last.Status.Phase == api.PhaseRolledBack || last.DeletionTimestamp != nil
		if !failed && sameInput(last.Name, d.GetName()) {
			return last, nil
		}
	}
	name := d.GetName()
	for n := 2; slices.ContainsFunc(known, func(t *api.Transaction) bool { return t.Name == d.GetName() }); n++ {
		d.SetName(fmt.Sprintf("%s-%d", name, n))
	}
	return nil, nil
}

// sameInput reports whether a name is one that inSet gives to an input.
func sameInput(name, first string) bool {
	return name == first || strings.HasPrefix(name, first+"-")
}

// settled says that a set is as it is to be, or about to become so.
func (s *session) settled(ctx context.Context, t *api.Transaction, w *waits) error {
	if t.Status.Phase != api.PhaseCommitted {
		s.print("transaction.backup.janus.io/%s makes the same changes already", t.Name)
		return w.end(ctx, s, t)
	}
	when := ""
	if t.Status.CompletionTime != nil {
		when = " at " + t.Status.CompletionTime.UTC().Format(time.RFC3339)
	}
	s.print("transaction.backup.janus.io/%s unchanged", t.Name)
	s.say("it has made the same changes%s; kubectl janus plan shows what another client has changed since", when)
	return nil
}
