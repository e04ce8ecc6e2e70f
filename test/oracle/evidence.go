package oracle

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/expression"
	"janus.io/janus/test/faultinject"
)

// Ref names an object by its resource, without the version: configmaps, or
// deployments.apps.
type Ref struct {
	Resource        string
	Namespace, Name string
}

func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Resource + "/" + r.Name
	}
	return r.Namespace + "/" + r.Resource + "/" + r.Name
}

// Version is an object as it was stored at some time.
type Version struct {
	Ref Ref
	// Revision is the resourceVersion as a number: one order over all objects.
	Revision int64
	// Object is what was stored; with Deleted it is the last that was known.
	Object  *unstructured.Unstructured
	Deleted bool
}

// History is what an independent watch has seen, in order of Revision.
type History []Version

// Evidence is all there is to say about a run.
type Evidence struct {
	// History has every version, from before the first Transaction was created until
	// after Janus has come to rest, of all Transactions, targets, Leases, ConfigMaps,
	// Secrets and Events of the namespaces of the run.
	History History
	// Calls are all requests of all processes of Janus.
	Calls []faultinject.Call
	// Runs are the Transactions of the run.
	Runs []Run
	// Texts is what Janus has said elsewhere, by name: its log, its metrics.
	Texts map[string]string
	// Canary is a value that only Secrets may hold; empty means none.
	Canary string
	// Hidden is a value of contents that come from Secrets to targets of any kind: it may be in
	// Secrets and in these targets; empty means none.
	Hidden string
	// Home is the namespace of Janus itself; empty if it is not known.
	Home string
	// CallsSinceFault is how many calls Janus has made after the last fault until the
	// last Transaction ended.
	CallsSinceFault int
	// SinceFault is how long that took; zero if it is not known.
	SinceFault time.Duration
	// TrustsAccounts is set if Janus takes a ServiceAccount that it has read to exist for a
	// while: one that has gone may still be acted as then.
	TrustsAccounts bool
	// Processes is how many processes work on the same Transactions at once; zero means
	// one.
	Processes int
	// ClocksTurned is set when the clock of a process was turned: what it
	// has written about times then proves nothing.
	ClocksTurned bool
	// HandedOver is how many calls there were when a process last left its Transactions
	// to another; zero if none has.
	HandedOver int
	// ListKeys says of lists, by the name of their field, which fields of an item are
	// its identity; none for a list that is a set. It is for kinds of the test's own:
	// those of Kubernetes are known, and any other list is one value.
	ListKeys map[string][]string
	// Kinds are the kinds that are served all the time; others follow from the CustomResourceDefinitions
	// of History. None means that it is not known what is served.
	Kinds []expression.Kind
	// Admitted are the fields, as .metadata.annotations.stamp, that mutating admission of
	// the test writes in any write of a target.
	Admitted []string
}

// Run is one Transaction of a run.
type Run struct {
	Namespace, Name string
	UID             types.UID
	// Spec is what was asked for; of an undo, with the changes that have followed from it.
	Spec api.TransactionSpec
	// Items are the targets of spec.changes, in that order.
	Items []Ref
}

// Breach is a guarantee that does not hold.
type Breach struct {
	// Guarantee is its name, one of those in Guarantees.
	Guarantee string
	// Message says what happened, to which object, and at which revision or call.
	Message string
}
