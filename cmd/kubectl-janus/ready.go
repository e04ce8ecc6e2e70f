package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/target"
)

// readinessTimeout is how long each object may take to become ready where no flag says it.
const readinessTimeout = limit(5 * time.Minute)

// readies are the flags that say whether a Transaction waits until what it makes is ready.
type readies struct {
	// waits is set if the command waits, or plans what one that waits would do.
	waits   bool
	off     bool
	timeout limit
	// given is set once timeout was named: without wait it has no meaning.
	given func() bool
}

func (r *readies) addTo(cmd *cobra.Command) {
	r.timeout = readinessTimeout
	f := cmd.Flags()
	f.BoolVar(&r.off, "no-ready", false, "with --wait, do not have the Transaction wait until workloads, definitions and APIServices are ready")
	f.Var(&r.timeout, "ready-timeout", "with --wait, how long each of these may take to become ready before everything is rolled back; 0 for no limit but --transaction-timeout")
	r.given = func() bool { return f.Changed("ready-timeout") }
}

// described reports whether a flag says something of the Transaction.
func (r *readies) described() bool { return r.off || r.given() }

func (r *readies) check() error {
	switch {
	case r.given() && !r.waits:
		return errors.New("--ready-timeout has a meaning only with --wait: without it nothing is waited for")
	case r.given() && r.off:
		return errors.New("--ready-timeout and --no-ready exclude each other")
	case r.timeout > 0 && time.Duration(r.timeout) < time.Second:
		return errors.New("--ready-timeout: want at least 1s, or 0 for no limit")
	}
	return nil
}

// waitedFor are the kinds of which nearly every object becomes ready by itself, within
// minutes, if it is right. Not among them is what may rightly take for ever (a claim that no Pod
// uses yet, a Job, a load balancer where nothing provides one), and custom resources, of many of
// which nobody writes a status.
var waitedFor = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "DaemonSet"}:                    true,
	{Group: "apps", Kind: "Deployment"}:                   true,
	{Group: "apps", Kind: "ReplicaSet"}:                   true,
	{Group: "apps", Kind: "StatefulSet"}:                  true,
	{Kind: "Pod"}:                                         true,
	{Kind: "ReplicationController"}:                       true,
	target.CRDKind:                                        true,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: true,
}

// awaits are the Awaits for what changes make, one for each object. They come after the last of
// those changes, so that objects may need each other to become ready, in whatever order
// they are listed.
func (r *readies) awaits(changes []api.Change) ([]api.Change, error) {
	if !r.waits || r.off {
		return nil, nil
	}
	var order []api.Target
	wanted := map[api.Target]*api.Target{} // The last change of an object decides.
	for i := range changes {
		t := &changes[i].Target
		id := t.Identity()
		if !waitedFor[schema.FromAPIVersionAndKind(t.APIVersion, t.Kind).GroupKind()] {
			continue
		}
		paused, err := isPaused(changes[i])
		if err != nil {
			return nil, err
		}
		if _, known := wanted[id]; !known {
			order = append(order, id)
		}
		if wanted[id] = t; paused {
			wanted[id] = nil
		}
	}
	var out []api.Change
	for _, id := range order {
		if t := wanted[id]; t != nil {
			out = append(out, api.Change{Target: *t, Type: api.Await, ReadyWhen: r.when()})
		}
	}
	return out, nil
}

func (r *readies) when() *api.ReadyWhen {
	when := &api.ReadyWhen{Status: api.StatusReady}
	if r.timeout > 0 {
		timeout := api.Duration(r.timeout.String())
		when.Timeout = &timeout
	}
	return when
}

// isPaused reports whether a change makes a workload that is told to make no progress.
func isPaused(c api.Change) (bool, error) {
	if c.Content == nil {
		return false, nil
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(c.Content.Raw); err != nil {
		return false, fmt.Errorf("decode %s: %w", c.Target.String(), err)
	}
	paused, _, _ := unstructured.NestedBool(u.Object, "spec", "paused")
	return paused, nil
}
