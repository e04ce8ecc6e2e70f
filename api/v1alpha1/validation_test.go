package v1alpha1_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// release is a minimal one.
var release = map[string]any{"managers": []any{"kubectl-patch"}}

const (
	contentRule     = "content is demanded for Create, Update and Patch, or contentFrom in its place, and has no meaning for Delete and Await"
	forceRule       = "force has a meaning for Patch alone"
	propagationRule = "propagationPolicy has a meaning for Delete alone"
	gateRule        = "goneWhen has a meaning for Delete alone, and readyWhen for the others"
	readyRule       = "needs either status or expression"
	lossRule        = "acceptLoss has no meaning for Create, which is rolled back by a deletion, and for Await, which changes nothing"
	awaitRule       = "an Await needs readyWhen: what to wait for"
	failRule        = "failWhen has a meaning only beside readyWhen or goneWhen: it ends their wait"
	holdRule        = "holdFor must be shorter than timeout"
	rollbackRule    = "rollback has no meaning for Create, whose rollback waits until the object is gone, and for Await, which changes nothing"
	brokenRule      = "a broken guard rolls everything back: leave out onFailure Continue, or the guard"
	guardRule       = "guard has a meaning for Await alone"
	activationRule  = "needs either apiVersion and kind, or expression"
	immutableRule   = "spec is immutable but for suspend and cancel: create another Transaction instead"
	lockRule        = "must be a duration from 1s to 24h, such as 90s, 5m or 1h30m"
	standRule       = "must be a duration from 1s to 8760h, such as 90s, 5m or 1h30m"
	timeoutRule     = "must be a duration from 1s to 168h, such as 90s, 5m or 1h30m"
	nameRule        = "the name of a change must be unique; the default is its position in the list"
	noDuration      = `Invalid value: "string": type conversion error from 'string' to 'google.protobuf.Duration' evaluating rule: `

	durationPattern  = `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	namePattern      = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	accountPattern   = `^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	versionPattern   = `^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	kindPattern      = `^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	targetPattern    = `^[^/%\x00-\x1f\x7f]+$`
	namespacePattern = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
)

// name is the longest name that a change may have, different for each i.
func name(i int) string { return fmt.Sprintf("%s-%04d", strings.Repeat("n", 58), i) }

func TestTransactionsThatAreAccepted(t *testing.T) {
	client := install(t).transactions(t)
	for title, tx := range map[string]*unstructured.Unstructured{
		"a Create with content":                 transaction(),
		"an Update with content":                transaction(inChange("Update", "type")),
		"a Patch with content":                  transaction(inChange("Patch", "type")),
		"a Delete without content":              transaction(inChange("Delete", "type"), dropInChange("content")),
		"a change without a name":               transaction(dropInChange("name")),
		"a change with an empty content":        transaction(inChange(map[string]any{}, "content")),
		"a target in another namespace":         transaction(inChange("other", "target", "namespace")),
		"a target with an empty namespace":      transaction(inChange("", "target", "namespace")),
		"a target of a group":                   transaction(inChange("apps.example.com/v1beta1", "target", "apiVersion")),
		"a target with a colon in its name":     transaction(inChange("system:A_b:c", "target", "name")),
		"a ServiceAccount with dots":            transaction(set("a.b-c", "serviceAccountName")),
		"the shortest lockTimeout":              transaction(set("1s", "lockTimeout")),
		"the longest lockTimeout":               transaction(set("24h", "lockTimeout")),
		"a lockTimeout of several units":        transaction(set("1h30m0.5s", "lockTimeout")),
		"a lockTimeout in milliseconds":         transaction(set("1500ms", "lockTimeout")),
		"the longest timeout":                   transaction(set("168h", "timeout")),
		"a plan that is approved":               transaction(set(map[string]any{"required": true}, "approval")),
		"a plan that stands for a year":         transaction(set(map[string]any{"required": true, "timeout": "8760h"}, "approval")),
		"a plan that need not be approved":      transaction(set(map[string]any{"required": false, "timeout": "1s"}, "approval")),
		"an undo that is approved":              transaction(drop("changes"), set(map[string]any{"revision": int64(1)}, "undoOf"), set(map[string]any{"required": true}, "approval")),
		"an undo to a revision":                 transaction(drop("changes"), set(map[string]any{"toRevision": int64(3), "acceptLoss": true}, "undoOf")),
		"an undo of everything":                 transaction(drop("changes"), set(map[string]any{"toRevision": int64(0)}, "undoOf")),
		"no failed attempt, and no hurry":       transaction(set(int64(0), "retryLimit"), set(int64(1), "changesPerMinute")),
		"a field manager":                       transaction(set("kustomize-controller", "fieldManager")),
		"a rollback on delete":                  transaction(set("Rollback", "onDelete")),
		"a conflict policy":                     transaction(set("Force", "conflictPolicy")),
		"a Patch that takes nothing":            transaction(inChange("Patch", "type"), inChange(false, "force")),
		"a Patch that accepts a loss":           transaction(inChange("Patch", "type"), inChange(true, "acceptLoss")),
		"a Delete that orphans":                 transaction(inChange("Delete", "type"), dropInChange("content"), inChange("Orphan", "propagationPolicy"), inChange(true, "acceptLoss")),
		"1000 changes with the longest names":   transaction(changes(1000)),
		"a name that is another one's position": transaction(changes(2), inChange("0", "name")),
		"changes that do not":                   transaction(changes(2), set("Graph", "order")),
		"changes that depend on each other":     transaction(changes(2), inChange([]any{name(1)}, "dependsOn"), set(int64(1000), "parallelism")),
		"a change with all its conditions": transaction(
			inChange("object != null", "when"), inChange(map[string]any{"status": "Ready", "timeout": "168h"}, "readyWhen"),
			inChange(map[string]any{"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor"}, "activation")),
		"a change that is ready by an expression": transaction(inChange(map[string]any{"expression": "object.data.x == 'y'"}, "readyWhen")),
		"an Await": transaction(inChange("Await", "type"), dropInChange("content"),
			inChange(map[string]any{"expression": "object != null", "holdFor": "10s", "timeout": "1m"}, "readyWhen"),
			inChange(map[string]any{"expression": "object.data.failed == 'true'", "messageExpression": "object.data.why"}, "failWhen")),
		"a guard": transaction(inChange("Await", "type"), dropInChange("content"), inChange(true, "guard"),
			inChange(map[string]any{"expression": "object != null"}, "readyWhen")),
		"a change of an optional kind, by an expression": transaction(
			inChange(map[string]any{"expression": "kinds.exists(k, k.group == 'monitoring.coreos.com')"}, "activation")),
		"a change that is skipped":       transaction(inChange("object != null", "when"), inChange("Skip", "whenFalse")),
		"a Create that deletes instead":  transaction(inChange("object != null", "when"), inChange("Delete", "whenFalse"), inChange(true, "acceptLoss")),
		"a release of all fields":        transaction(inChange("Patch", "type"), dropInChange("content"), inChange(release, "release")),
		"a release of a field":           transaction(inChange("Patch", "type"), dropInChange("content"), inChange(map[string]any{"managers": []any{"kubectl"}, "fields": []any{".spec.replicas"}}, "release")),
		"a Patch that deletes instead":   transaction(inChange("Patch", "type"), inChange("object != null", "when"), inChange("Delete", "whenFalse")),
		"an Update that deletes instead": transaction(inChange("Update", "type"), inChange("object != null", "when"), inChange("Delete", "whenFalse")),
		"a change that is no guard":      transaction(inChange(false, "guard")),
		"a Patch whose rollback is waited for": transaction(inChange("Patch", "type"),
			inChange(map[string]any{"readyWhen": map[string]any{"status": "Ready", "timeout": "5m", "holdFor": "10s"}}, "rollback")),
		"a Delete whose rollback is waited for": transaction(inChange("Delete", "type"), dropInChange("content"),
			inChange(map[string]any{"readyWhen": map[string]any{"expression": "object != null"}}, "rollback")),
		"a Delete that waits for more": transaction(inChange("Delete", "type"), dropInChange("content"),
			inChange(map[string]any{"expression": "object == null", "timeout": "1s"}, "goneWhen")),
	} {
		t.Run(title, func(t *testing.T) {
			_, err := create(t.Context(), client, tx)
			require.NoError(t, err)
		})
	}
}

// refusal is one cause in the answer of the API server: the field, and the
// message word for word.
type refusal struct{ field, message string }

// mismatch is the refusal of a value that does not match its pattern.
func mismatch(field, value, pattern string) refusal {
	return refusal{field, fmt.Sprintf("Invalid value: %q: %s in body should match '%s'", value, field, pattern)}
}

// twice is the refusal of a name that two changes have.
func twice(name string) refusal {
	return refusal{"spec.changes", `Invalid value: "array": insert failed: key ` + name + " already exists evaluating rule: " + nameRule}
}

func TestTransactionsThatAreRefused(t *testing.T) {
	client := install(t).transactions(t)
	for title, c := range map[string]struct {
		tx   *unstructured.Unstructured
		want []refusal
	}{
		"a Create without content": {
			transaction(dropInChange("content")),
			[]refusal{{"spec.changes[0]", "Invalid value: " + contentRule}},
		},
		"a Create whose rollback is waited for": {
			transaction(inChange(map[string]any{"readyWhen": map[string]any{"status": "Ready"}}, "rollback")),
			[]refusal{{"spec.changes[0]", "Invalid value: " + rollbackRule}},
		},
		"a rollback that holds for too long": {
			transaction(inChange("Patch", "type"),
				inChange(map[string]any{"readyWhen": map[string]any{"status": "Ready", "timeout": "5s", "holdFor": "10s"}}, "rollback")),
			[]refusal{{"spec.changes[0].rollback.readyWhen", "Invalid value: " + holdRule}},
		},
		"a guard of a Transaction that rolls nothing back": {
			transaction(inChange("Await", "type"), dropInChange("content"), inChange(true, "guard"),
				inChange(map[string]any{"status": "Ready"}, "readyWhen"), set("Continue", "onFailure")),
			[]refusal{{"spec", "Invalid value: " + brokenRule}},
		},
		"an activation that asks for nothing": {
			transaction(inChange(map[string]any{}, "activation")),
			[]refusal{{"spec.changes[0].activation", "Invalid value: " + activationRule}},
		},
		"an activation by a kind and by an expression": {
			transaction(inChange(map[string]any{"apiVersion": "v1", "kind": "Pod", "expression": "true"}, "activation")),
			[]refusal{{"spec.changes[0].activation", "Invalid value: " + activationRule}},
		},
		"an activation by half a kind": {
			transaction(inChange(map[string]any{"kind": "Pod"}, "activation")),
			[]refusal{{"spec.changes[0].activation", "Invalid value: " + activationRule}},
		},
		"a deletion if nothing is false": {
			transaction(inChange("Delete", "whenFalse")),
			[]refusal{{"spec.changes[0]", "Invalid value: whenFalse has a meaning only beside when"}},
		},
		"a Delete that deletes if its when is false": {
			transaction(inChange("Delete", "type"), dropInChange("content"), inChange("object != null", "when"), inChange("Delete", "whenFalse")),
			[]refusal{{"spec.changes[0]", "Invalid value: whenFalse has a meaning for Create, Update and Patch alone: a Delete or an Await whose when is false is skipped"}},
		},
		"another thing to do if it is false": {
			transaction(inChange("object != null", "when"), inChange("Orphan", "whenFalse")),
			[]refusal{{"spec.changes[0].whenFalse", `Unsupported value: "Orphan": supported values: "Skip", "Delete"`}},
		},
		"a Create that accepts a loss and is skipped": {
			transaction(inChange(true, "acceptLoss"), inChange("object != null", "when"), inChange("Skip", "whenFalse")),
			[]refusal{{"spec.changes[0]", "Invalid value: acceptLoss has no meaning for Create, which is rolled back by a deletion, and for Await, which changes nothing"}},
		},
		"a guard that changes something": {
			transaction(inChange(true, "guard")),
			[]refusal{{"spec.changes[0]", "Invalid value: " + guardRule}},
		},
		"an Update without content": {
			transaction(inChange("Update", "type"), dropInChange("content")),
			[]refusal{{"spec.changes[0]", "Invalid value: " + contentRule}},
		},
		"a release beside content": {
			transaction(inChange("Patch", "type"), inChange(release, "release")),
			[]refusal{{"spec.changes[0]", "Invalid value: release has a meaning for Patch alone, in place of content"}},
		},
		"an Update that releases": {
			transaction(inChange("Update", "type"), dropInChange("content"), inChange(release, "release")),
			[]refusal{{"spec.changes[0]", "Invalid value: release has a meaning for Patch alone, in place of content"}},
		},
		"a release by nobody": {
			transaction(inChange("Patch", "type"), dropInChange("content"), inChange(map[string]any{"managers": []any{}}, "release")),
			[]refusal{{"spec.changes[0].release.managers", "Invalid value: 0: spec.changes[0].release.managers in body should have at least 1 items"}},
		},
		"a release of no path": {
			transaction(inChange("Patch", "type"), dropInChange("content"), inChange(map[string]any{"managers": []any{"kubectl"}, "fields": []any{"spec"}}, "release")),
			[]refusal{{"spec.changes[0].release.fields[0]", `Invalid value: "spec": spec.changes[0].release.fields[0] in body should match '^\..'`}},
		},
		"a Patch without content": {
			transaction(inChange("Patch", "type"), dropInChange("content")),
			[]refusal{{"spec.changes[0]", "Invalid value: " + contentRule}},
		},
		"a Delete with content": {
			transaction(inChange("Delete", "type")),
			[]refusal{{"spec.changes[0]", "Invalid value: " + contentRule}},
		},
		"an Await with content": {
			transaction(inChange("Await", "type"), inChange(map[string]any{"status": "Ready"}, "readyWhen")),
			[]refusal{{"spec.changes[0]", "Invalid value: " + contentRule}},
		},
		"an Await that waits for nothing": {
			transaction(inChange("Await", "type"), dropInChange("content")),
			[]refusal{{"spec.changes[0]", "Invalid value: " + awaitRule}},
		},
		"failWhen without a wait": {
			transaction(inChange(map[string]any{"expression": "true"}, "failWhen")),
			[]refusal{{"spec.changes[0]", "Invalid value: " + failRule}},
		},
		"what has to hold for longer than it may take": {
			transaction(inChange(map[string]any{"status": "Ready", "holdFor": "1m", "timeout": "60s"}, "readyWhen")),
			[]refusal{{"spec.changes[0].readyWhen", "Invalid value: " + holdRule}},
		},
		"content that is no object": {
			transaction(inChange("data", "content")),
			[]refusal{{"spec.changes[0].content", `Invalid value: "string": spec.changes[0].content in body must be of type object: "string"`}},
		},
		"a Create with force": {
			transaction(inChange(true, "force")),
			[]refusal{{"spec.changes[0]", "Invalid value: " + forceRule}},
		},
		"an Update with a propagationPolicy": {
			transaction(inChange("Update", "type"), inChange("Orphan", "propagationPolicy")),
			[]refusal{{"spec.changes[0]", "Invalid value: " + propagationRule}},
		},
		"a Create that accepts a loss": {
			transaction(inChange(true, "acceptLoss")),
			[]refusal{{"spec.changes[0]", "Invalid value: " + lossRule}},
		},
		"a Delete with readyWhen": {
			transaction(inChange("Delete", "type"), dropInChange("content"), inChange(map[string]any{"status": "Ready"}, "readyWhen")),
			[]refusal{{"spec.changes[0]", "Invalid value: " + gateRule}},
		},
		"a Patch with goneWhen": {
			transaction(inChange("Patch", "type"), inChange(map[string]any{"expression": "object == null"}, "goneWhen")),
			[]refusal{{"spec.changes[0]", "Invalid value: " + gateRule}},
		},
		"a readyWhen with nothing in it": {
			transaction(inChange(map[string]any{"timeout": "1m"}, "readyWhen")),
			[]refusal{{"spec.changes[0].readyWhen", "Invalid value: " + readyRule}},
		},
		"a readyWhen with too much in it": {
			transaction(inChange(map[string]any{"status": "Ready", "expression": "true"}, "readyWhen")),
			[]refusal{{"spec.changes[0].readyWhen", "Invalid value: " + readyRule}},
		},
		"a readyWhen that never ends": {
			transaction(inChange(map[string]any{"status": "Ready", "timeout": "169h"}, "readyWhen")),
			[]refusal{{"spec.changes[0].readyWhen.timeout", `Invalid value: "169h": ` + timeoutRule}},
		},
		"one dependency twice": {
			transaction(changes(2), inChange([]any{name(1), name(1)}, "dependsOn")),
			[]refusal{{"spec.changes[0].dependsOn[1]", fmt.Sprintf("Duplicate value: %q", name(1))}},
		},
		"no parallelism at all": {
			transaction(set(int64(0), "parallelism")),
			[]refusal{{"spec.parallelism", "Invalid value: 0: spec.parallelism in body should be greater than or equal to 1"}},
		},
		"fewer attempts than none": {
			transaction(set(int64(-1), "retryLimit")),
			[]refusal{{"spec.retryLimit", "Invalid value: -1: spec.retryLimit in body should be greater than or equal to 0"}},
		},
		"more attempts than can be counted": {
			transaction(set(int64(1001), "retryLimit")),
			[]refusal{{"spec.retryLimit", "Invalid value: 1001: spec.retryLimit in body should be less than or equal to 1000"}},
		},
		"no change in a minute": {
			transaction(set(int64(0), "changesPerMinute")),
			[]refusal{{"spec.changesPerMinute", "Invalid value: 0: spec.changesPerMinute in body should be greater than or equal to 1"}},
		},
		"more changes than can be spread": {
			transaction(set(int64(6001), "changesPerMinute")),
			[]refusal{{"spec.changesPerMinute", "Invalid value: 6001: spec.changesPerMinute in body should be less than or equal to 6000"}},
		},
		"a field manager of an item": {
			transaction(set("janus-0a1b2c3d-0", "fieldManager")),
			[]refusal{{"spec.fieldManager", `Invalid value: "janus-0a1b2c3d-0": must not be a name that Janus or the API server gives`}},
		},
		"a field manager of the API server": {
			transaction(set("before-first-apply", "fieldManager")),
			[]refusal{{"spec.fieldManager", `Invalid value: "before-first-apply": must not be a name that Janus or the API server gives`}},
		},
		"an unknown propagationPolicy": {
			transaction(inChange("Delete", "type"), dropInChange("content"), inChange("Cascade", "propagationPolicy")),
			[]refusal{{"spec.changes[0].propagationPolicy", `Unsupported value: "Cascade": supported values: "Background", "Foreground", "Orphan"`}},
		},
		"an unknown conflictPolicy": {
			transaction(set("Ask", "conflictPolicy")),
			[]refusal{{"spec.conflictPolicy", `Unsupported value: "Ask": supported values: "Fail", "Force"`}},
		},
		"an unknown type": {
			transaction(inChange("Upsert", "type")),
			[]refusal{{"spec.changes[0].type", `Unsupported value: "Upsert": supported values: "Create", "Update", "Patch", "Delete", "Await"`}},
		},
		"no type":                {transaction(dropInChange("type")), []refusal{{"spec.changes[0].type", "Required value"}}},
		"no target":              {transaction(dropInChange("target")), []refusal{{"spec.changes[0].target", "Required value"}}},
		"no name of a target":    {transaction(dropInChange("target", "name")), []refusal{{"spec.changes[0].target.name", "Required value"}}},
		"no kind of a target":    {transaction(dropInChange("target", "kind")), []refusal{{"spec.changes[0].target.kind", "Required value"}}},
		"no version of a target": {transaction(dropInChange("target", "apiVersion")), []refusal{{"spec.changes[0].target.apiVersion", "Required value"}}},
		"an apiVersion of three parts": {
			transaction(inChange("a/b/c", "target", "apiVersion")),
			[]refusal{mismatch("spec.changes[0].target.apiVersion", "a/b/c", versionPattern)},
		},
		"a name of a target with a slash": {
			transaction(inChange("a/b", "target", "name")),
			[]refusal{mismatch("spec.changes[0].target.name", "a/b", targetPattern)},
		},
		"a name of a target with a terminal escape": {
			transaction(inChange("a\x1b[2J", "target", "name")),
			[]refusal{mismatch("spec.changes[0].target.name", "a\x1b[2J", targetPattern)},
		},
		"a name of a target that is too long": {
			transaction(inChange(strings.Repeat("n", 254), "target", "name")),
			[]refusal{{"spec.changes[0].target.name", "Too long: may not be more than 253 bytes"}},
		},
		"a namespace of a target in capitals": {
			transaction(inChange("Other", "target", "namespace")),
			[]refusal{mismatch("spec.changes[0].target.namespace", "Other", namespacePattern)},
		},
		"a kind with a space": {
			transaction(inChange("Config Map", "target", "kind")),
			[]refusal{mismatch("spec.changes[0].target.kind", "Config Map", kindPattern)},
		},
		"no changes at all":   {transaction(drop("changes")), []refusal{{"spec", "Invalid value: a Transaction has changes, or undoOf in place of them"}}},
		"changes and an undo": {transaction(set(map[string]any{"revision": int64(1)}, "undoOf")), []refusal{{"spec", "Invalid value: a Transaction has changes, or undoOf in place of them"}}},
		"an undo of nothing":  {transaction(drop("changes"), set(map[string]any{}, "undoOf")), []refusal{{"spec.undoOf", "Invalid value: name what to undo by revision, by name or by toRevision, and by one of them alone"}}},
		"an undo of two":      {transaction(drop("changes"), set(map[string]any{"revision": int64(1), "name": "a"}, "undoOf")), []refusal{{"spec.undoOf", "Invalid value: name what to undo by revision, by name or by toRevision, and by one of them alone"}}},
		"an undo of one and of all since": {
			transaction(drop("changes"), set(map[string]any{"revision": int64(2), "toRevision": int64(1)}, "undoOf")),
			[]refusal{{"spec.undoOf", "Invalid value: name what to undo by revision, by name or by toRevision, and by one of them alone"}},
		},
		"an undo of all since a name": {
			transaction(drop("changes"), set(map[string]any{"name": "a", "toRevision": int64(1)}, "undoOf")),
			[]refusal{{"spec.undoOf", "Invalid value: name what to undo by revision, by name or by toRevision, and by one of them alone"}},
		},
		"an undo to before the first": {
			transaction(drop("changes"), set(map[string]any{"toRevision": int64(-1)}, "undoOf")),
			[]refusal{{"spec.undoOf.toRevision", "Invalid value: -1: spec.undoOf.toRevision in body should be greater than or equal to 0"}},
		},
		"an undo of number 0":   {transaction(drop("changes"), set(map[string]any{"revision": int64(0)}, "undoOf")), []refusal{{"spec.undoOf.revision", "Invalid value: 0: spec.undoOf.revision in body should be greater than or equal to 1"}}},
		"an empty list":         {transaction(changes(0)), []refusal{{"spec.changes", "Invalid value: 0: spec.changes in body should have at least 1 items"}}},
		"1001 changes":          {transaction(changes(1001)), []refusal{{"spec.changes", "Too many: 1001: must have at most 1000 items"}}},
		"a name with a capital": {transaction(inChange("A", "name")), []refusal{mismatch("spec.changes[0].name", "A", namePattern)}},
		"an empty name":         {transaction(inChange("", "name")), []refusal{{"spec.changes[0].name", `Invalid value: "": spec.changes[0].name in body should be at least 1 chars long`}}},
		"a name of 64 characters": {
			transaction(inChange(strings.Repeat("n", 64), "name")),
			[]refusal{{"spec.changes[0].name", "Too long: may not be more than 63 bytes"}},
		},
		"one name twice": {
			transaction(changes(3), inChange(name(2), "name")),
			[]refusal{twice(name(2))},
		},
		"a name that is the position of a change without one": {
			transaction(changes(2), inChange("1", "name"), func(o map[string]any) {
				delete(o["spec"].(map[string]any)["changes"].([]any)[1].(map[string]any), "name")
			}),
			[]refusal{twice("1")},
		},
		"one name twice among 1000": {
			transaction(changes(1000), inChange(name(999), "name")),
			[]refusal{twice(name(999))},
		},
		"no ServiceAccount": {
			transaction(drop("serviceAccountName")),
			[]refusal{{"spec.serviceAccountName", "Required value"}},
		},
		"an empty ServiceAccount": {
			transaction(set("", "serviceAccountName")),
			[]refusal{{"spec.serviceAccountName", `Invalid value: "": spec.serviceAccountName in body should be at least 1 chars long`}},
		},
		"a ServiceAccount with a colon": {
			transaction(set("system:admin", "serviceAccountName")),
			[]refusal{mismatch("spec.serviceAccountName", "system:admin", accountPattern)},
		},
		"a lockTimeout without a unit":     {transaction(set("5", "lockTimeout")), []refusal{mismatch("spec.lockTimeout", "5", durationPattern), {"spec.lockTimeout", noDuration + lockRule}}},
		"a lockTimeout in days":            {transaction(set("1d", "lockTimeout")), []refusal{mismatch("spec.lockTimeout", "1d", durationPattern), {"spec.lockTimeout", noDuration + lockRule}}},
		"a negative lockTimeout":           {transaction(set("-5m", "lockTimeout")), []refusal{mismatch("spec.lockTimeout", "-5m", durationPattern), {"spec.lockTimeout", `Invalid value: "-5m": ` + lockRule}}},
		"a lockTimeout below a second":     {transaction(set("999ms", "lockTimeout")), []refusal{{"spec.lockTimeout", `Invalid value: "999ms": ` + lockRule}}},
		"a lockTimeout of more than a day": {transaction(set("24h1s", "lockTimeout")), []refusal{{"spec.lockTimeout", `Invalid value: "24h1s": ` + lockRule}}},
		"a lockTimeout beyond what a duration can say": {
			transaction(set("99999999h", "lockTimeout")),
			[]refusal{{"spec.lockTimeout", noDuration + lockRule}},
		},
		"a timeout below a second":      {transaction(set("0s", "timeout")), []refusal{{"spec.timeout", `Invalid value: "0s": ` + timeoutRule}}},
		"a timeout of more than a week": {transaction(set("169h", "timeout")), []refusal{{"spec.timeout", `Invalid value: "169h": ` + timeoutRule}}},
		"an approval that says nothing": {transaction(set(map[string]any{}, "approval")), []refusal{{"spec.approval.required", "Required value"}}},
		"a plan that stands for no time": {
			transaction(set(map[string]any{"required": true, "timeout": "0s"}, "approval")), []refusal{{"spec.approval.timeout", `Invalid value: "0s": ` + standRule}},
		},
		"a plan that stands for more than a year": {
			transaction(set(map[string]any{"required": true, "timeout": "8761h"}, "approval")), []refusal{{"spec.approval.timeout", `Invalid value: "8761h": ` + standRule}},
		},
		"an unknown deletion policy":      {transaction(set("Keep", "onDelete")), []refusal{{"spec.onDelete", `Unsupported value: "Keep": supported values: "Release", "Rollback"`}}},
		"neither spec nor anything in it": {transaction(func(o map[string]any) { delete(o, "spec") }), []refusal{{"spec", "Required value"}}},
	} {
		t.Run(title, func(t *testing.T) {
			_, err := create(t.Context(), client, c.tx)
			assertRefused(t, c.want, err)
		})
	}
}

func TestUnknownFieldsAreRefusedUnderStrictValidation(t *testing.T) {
	client := install(t).transactions(t)
	_, err := create(t.Context(), client, transaction(set("x", "servicAccountName")))
	require.True(t, apierrors.IsBadRequest(err), "got %v", err)
	require.ErrorContains(t, err, `unknown field "spec.servicAccountName"`)
}

// assertRefused compares why the API server has refused a Transaction. Before 1.35 Kubernetes names
// the type of a value that a rule refuses, and since then the value, or neither for an object.
func assertRefused(t *testing.T, want []refusal, err error) {
	t.Helper()
	got := refusals(t, err)
	if len(got) == len(want) {
		for i, r := range got {
			if typed.MatchString(r.message) {
				got[i].message = value.ReplaceAllString(r.message, "")
				want[i].message = value.ReplaceAllString(want[i].message, "") //nolint:gosec // The lists are equally long.
			}
		}
	}
	assert.Equal(t, want, got)
}

var (
	typed = regexp.MustCompile(`^Invalid value: "(?:object|string)": `)
	value = regexp.MustCompile(`^Invalid value: (?:"(?:[^"\\]|\\.)*": )?`)
)

// refusals lists the causes of a 422.
func refusals(t *testing.T, err error) []refusal {
	t.Helper()
	require.True(t, apierrors.IsInvalid(err), "the API server must refuse it as invalid; got %v", err)
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	var found []refusal
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "<nil>" {
			// The note that rules were left out because of the other causes.
			continue
		}
		found = append(found, refusal{cause.Field, cause.Message})
	}
	return found
}
