package faults

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
)

//go:embed testdata
var testdata embed.FS

// workload is a Transaction that is run again and again, each time with another
// fault. In its YAML, RUN stands for a word that no other run has, and OTHER for a
// second namespace.
type workload struct {
	Name string `json:"-"`
	// Objects are there before, and Changes are what the Transaction does.
	Objects []map[string]any `json:"objects"`
	Changes []map[string]any `json:"changes"`
	// RefuseAfter makes further workloads, in which the change that is put in at that
	// position passes its dry run and is refused when it is made.
	RefuseAfter []int `json:"refuseAfter"`
	// RefuseOnly leaves the workload without a refusal out.
	RefuseOnly     bool      `json:"refuseOnly"`
	Ends           api.Phase `json:"ends"`
	ConflictPolicy string    `json:"conflictPolicy"`
	OnDelete       string    `json:"onDelete"`
	OnFailure      string    `json:"onFailure"`
	DryRun         bool      `json:"dryRun"`
	// Rights is cluster if the ServiceAccount may do anything anywhere.
	Rights string `json:"rights"`
	// Discovery makes the faults meet what is read of kinds and their schemas too.
	Discovery bool `json:"discovery"`
	// Controller waits until the Deployment controller has seen the objects.
	Controller bool `json:"controller"`
	// Finalizes has another client take finalizers off what is being deleted.
	Finalizes bool `json:"finalizes"`
	// Approves has the Transaction need approval, and another client approve its plans.
	Approves bool `json:"approves"`
	// Slow says that the API server takes seconds for a creation, as for an object of a
	// CustomResourceDefinition that it has just been given. Janus waits that long for
	// requests that may be under way.
	Slow bool `json:"slow"`
	// WaveBytes is how many bytes of before-images are in memory until they are saved; zero
	// is what janusd has, and 1 saves each by itself.
	WaveBytes int `json:"waveBytes"`
	// Faults is few, or rare, for a workload that costs much: every request meets some
	// faults, or some requests do.
	Faults string `json:"faults"`
	Canary string `json:"canary"`
	// Earlier are the changes of a Transaction that has committed before, and is remembered.
	// If EarlierOnFailure is Continue, it has made a part of them and failed.
	// Since are those of another that has committed after that. Undoes says that what has
	// committed is undone in place of Changes, both together if there are two, and Remembers is
	// the revisionHistoryLimit.
	Earlier          []map[string]any `json:"earlier"`
	EarlierOnFailure string           `json:"earlierOnFailure"`

	Since     []map[string]any `json:"since"`
	Undoes    bool             `json:"undoes"`
	Remembers int64            `json:"remembers"`
	// Contenders are the changes of several Transactions that run at the same time, in
	// place of Changes, and Processes how many processes of Janus work on them.
	Contenders [][]map[string]any `json:"-"`
	Processes  int                `json:"-"`
}

// refused is the change that is refused when it is made.
var refused = map[string]any{
	"target":  map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "refused-b"},
	"type":    "Create",
	"content": map[string]any{"data": map[string]any{"a": "b"}},
}

// filler makes a before-image large.
var filler = strings.Repeat("0123456789abcdef", 100_000/16)

// workloads reads them all.
func workloads(t testing.TB) []workload {
	t.Helper()
	files, err := testdata.ReadDir("testdata/workloads")
	require.NoError(t, err)
	var out []workload
	for _, file := range files {
		content, err := testdata.ReadFile("testdata/workloads/" + file.Name())
		require.NoError(t, err)
		w := workload{Name: strings.TrimSuffix(path.Base(file.Name()), ".yaml"), Ends: api.PhaseCommitted}
		require.NoError(t, yaml.UnmarshalStrict(content, &w), file.Name())
		if !w.RefuseOnly {
			out = append(out, w)
		}
		for _, at := range w.RefuseAfter {
			r := w
			r.Name, r.Ends = w.Name+"-refused", api.PhaseRolledBack
			if len(w.RefuseAfter) > 1 {
				r.Name = fmt.Sprintf("%s-refused-%d", w.Name, at)
			}
			if at < w.RefuseAfter[len(w.RefuseAfter)-1] {
				r.Faults = "few" // what it does the last one does too
			}
			r.Changes = slices.Insert(slices.Clone(w.Changes), at, refused)
			out = append(out, r)
		}
	}
	return out
}

// place is where a workload is run.
type place struct {
	run, namespace, other string
	used                  int
}

// decode returns a copy of what YAML says, with the names of the place.
func decode[T any](what any, at place) (out T, err error) {
	content, err := json.Marshal(what)
	if err != nil {
		return out, fmt.Errorf("encode a workload: %w", err)
	}
	text := strings.NewReplacer("RUN", at.run, "OTHER", at.other, "FILLER", filler).Replace(string(content))
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return out, fmt.Errorf("decode a workload: %w", err)
	}
	return out, nil
}

// transactions makes the Transactions of the workload.
func (w workload) transactions(at place) ([]*unstructured.Unstructured, error) {
	if len(w.Contenders) == 0 {
		with := map[string]any{}
		if w.Remembers > 0 {
			with["revisionHistoryLimit"] = w.Remembers
		}
		switch {
		case w.Undoes && len(w.Since) > 0:
			with["undoOf"] = map[string]any{"toRevision": int64(0)}
		case w.Undoes:
			with["undoOf"] = map[string]any{"name": earlier}
		}
		txn, err := w.transaction(at, transaction, with, w.Changes)
		return []*unstructured.Unstructured{txn}, err
	}
	var out []*unstructured.Unstructured
	for n, changes := range w.Contenders {
		txn, err := w.transaction(at, fmt.Sprintf("%s-%d", transaction, n), nil, changes)
		if err != nil {
			return nil, err
		}
		out = append(out, txn)
	}
	return out, nil
}

// transaction makes one Transaction.
func (w workload) transaction(at place, name string, with map[string]any, list []map[string]any) (*unstructured.Unstructured, error) {
	spec := map[string]any{"serviceAccountName": account, "lockTimeout": lockTimeout.String()}
	maps.Copy(spec, with)
	if len(list) > 0 {
		changes, err := decode[[]any](list, at)
		if err != nil {
			return nil, err
		}
		spec["changes"] = changes
	}
	if w.ConflictPolicy != "" {
		spec["conflictPolicy"] = w.ConflictPolicy
	}
	if w.OnDelete != "" {
		spec["onDelete"] = w.OnDelete
	}
	if w.Approves {
		spec["approval"] = map[string]any{"required": true}
	}
	if w.OnFailure != "" {
		spec["onFailure"] = w.OnFailure
	}
	if w.DryRun {
		spec["dryRun"] = true
	}
	txn := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	txn.SetGroupVersionKind(api.Kind)
	txn.SetName(name)
	return txn, nil
}
