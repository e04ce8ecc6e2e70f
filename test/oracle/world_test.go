package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
)

// tree is an object as JSON has it.
type tree = map[string]any

// world fabricates evidence: it stores objects as an API server does, and notes the
// requests of Janus.
type world struct {
	revision int64
	uids     int
	live     map[Ref]tree
	evidence Evidence
	counts   map[string]int
	images   map[int]tree // the before-images of the items
}

const (
	ns      = "shop"
	account = "system:serviceaccount:shop:deployer"
	txnUID  = "aaaabbbb-0000-4000-8000-000000000001"
)

var (
	mapA     = Ref{"configmaps", ns, "a"}
	mapB     = Ref{"configmaps", ns, "b"}
	mapC     = Ref{"configmaps", ns, "c"}
	webD     = Ref{"deployments.apps", ns, "web"}
	txn      = Ref{transactions, ns, "txn"}
	imagesOf = Ref{"configmaps", ns, "txn-rollback"}
)

func newWorld() *world {
	w := &world{live: map[Ref]tree{}, counts: map[string]int{}, images: map[int]tree{}, revision: 100}
	w.foreign(mapA, "tester", func(o tree) { o["data"] = tree{"color": "red", "size": "small"} })
	w.foreign(mapC, "tester", func(o tree) { o["data"] = tree{"left": "over"} })
	w.foreign(webD, "tester", func(o tree) {
		o["spec"] = tree{"replicas": int64(1), "template": tree{"spec": tree{"containers": []any{tree{"name": "web", "image": "web:1"}}}}}
	})
	return w
}

// spec has a change of each type.
func spec() api.TransactionSpec {
	raw := func(s string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(s)} }
	cm := func(name string) api.Target { return api.Target{APIVersion: "v1", Kind: "ConfigMap", Name: name} }
	return api.TransactionSpec{ServiceAccountName: "deployer", Changes: []api.Change{
		{Target: cm("a"), Type: api.Patch, Content: raw(`{"data":{"color":"blue"}}`)},
		{Target: cm("b"), Type: api.Create, Content: raw(`{"data":{"x":"1"}}`)},
		{Target: api.Target{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, Type: api.Update,
			Content: raw(`{"spec":{"replicas":1,"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`)},
		{Target: cm("c"), Type: api.Delete},
	}}
}

var targets = []Ref{mapA, mapB, webD, mapC}

// copyOf is a deep copy, with the types of JSON.
func copyOf(o tree) tree { return runtime.DeepCopyJSON(o) }

// store keeps an object as its next version.
func (w *world) store(ref Ref, o tree) {
	w.revision++
	o["metadata"].(tree)["resourceVersion"] = strconv.FormatInt(w.revision, 10)
	w.live[ref] = o
	w.enter(ref, o, false)
}

func (w *world) enter(ref Ref, o tree, deleted bool) {
	w.evidence.History = append(w.evidence.History, Version{Ref: ref, Revision: w.revision, Object: &unstructured.Unstructured{Object: copyOf(o)}, Deleted: deleted})
}

// blank is an object of a name, as the server makes it.
func (w *world) blank(ref Ref) tree {
	w.uids++
	return tree{"metadata": tree{"name": ref.Name, "namespace": ref.Namespace, "uid": fmt.Sprintf("%08d-0000-4000-8000-000000000000", w.uids)}}
}

func (w *world) end(ref Ref) {
	w.revision++
	w.enter(ref, w.live[ref], true)
	delete(w.live, ref)
}

// own makes a manager an owner; none takes it off.
func own(o tree, manager string, owns bool) {
	meta := o["metadata"].(tree)
	entries, _ := meta["managedFields"].([]any)
	entries = slices.DeleteFunc(slices.Clone(entries), func(e any) bool { return e.(tree)["manager"] == manager })
	if owns {
		entries = append(entries, tree{"manager": manager, "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": tree{"f:data": tree{}}})
	}
	meta["managedFields"] = entries
}

// sign has an object say which Transaction has made it.
func sign(o tree, by Ref) {
	meta := o["metadata"].(tree)
	meta["labels"] = tree{"janus.io/transaction": by.Name}
	meta["annotations"] = tree{"janus.io/transaction": by.Namespace + "/" + by.Name}
}

// foreign writes an object as another client.
func (w *world) foreign(ref Ref, manager string, change func(tree)) {
	o := w.live[ref]
	if o == nil {
		o = w.blank(ref)
	}
	o = copyOf(o)
	change(o)
	own(o, manager, true)
	w.store(ref, o)
}

func (w *world) foreignDelete(ref Ref) { w.end(ref) }

// request notes a request of Janus. body and answer become JSON.
func (w *world) request(c faultinject.Call, ref Ref, body, answer any) *faultinject.Call {
	c.Kind, c.Resource, c.Namespace, c.Name = faultinject.Write, ref.Resource, ref.Namespace, ref.Name
	base := "/api/v1"
	if resource, group, ok := strings.Cut(ref.Resource, "."); ok {
		c.Resource, base = resource, "/apis/"+group+"/v1"
	}
	c.Path = base + "/namespaces/" + ref.Namespace + "/" + c.Resource
	if c.Method != "POST" {
		c.Path += "/" + ref.Name
	}
	if c.Method == "GET" {
		c.Kind = faultinject.Read
	}
	c.Key = strings.TrimRight(c.Method+" "+c.Resource+"/"+ref.Name+"/"+c.Subresource, "/")
	c.Nth = w.counts[c.Key]
	w.counts[c.Key]++
	c.Sent = len(w.evidence.Calls)*2 + 1
	c.Answered, c.Code = c.Sent+1, 200
	c.Body, c.Answer = encodedAs(body), encodedAs(answer)
	w.evidence.Calls = append(w.evidence.Calls, c)
	return &w.evidence.Calls[len(w.evidence.Calls)-1]
}

func encodedAs(v any) []byte {
	if v == nil {
		return nil
	}
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

// condition is what a request says about the object that it must meet.
func condition(o tree) tree {
	meta := o["metadata"].(tree)
	return tree{"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
}

// send writes an object as Janus: a PUT, or a PATCH, or a POST where nothing is.
func (w *world) send(method string, ref Ref, c faultinject.Call, kind string, change func(tree)) *faultinject.Call {
	body := tree{}
	if kind != "" {
		body["kind"], body["apiVersion"] = kind, "v1"
	}
	o := w.live[ref]
	if o == nil {
		o = w.blank(ref)
		body["metadata"] = tree{"name": ref.Name}
	} else {
		body["metadata"] = condition(o)
	}
	o = copyOf(o)
	change(o)
	w.store(ref, o)
	c.Method = method
	return w.request(c, ref, body, o)
}

// remove deletes an object as Janus.
func (w *world) remove(ref Ref, user string) *faultinject.Call {
	o := w.live[ref]
	w.end(ref)
	return w.request(faultinject.Call{Method: "DELETE", User: user}, ref, tree{"kind": "DeleteOptions", "preconditions": condition(o)},
		tree{"kind": "Status", "status": "Success", "details": tree{"uid": o["metadata"].(tree)["uid"]}})
}

func manager(i int) string { return "janus-aaaabbbb-" + strconv.Itoa(i) }

// asItem is a request of an item.
func asItem(i int) faultinject.Call { return faultinject.Call{User: account, FieldManager: manager(i)} }

// checkpoint writes the status.
func (w *world) checkpoint(change func(status tree)) {
	w.send("PUT", txn, faultinject.Call{Subresource: "status", FieldManager: "janusd"}, "Transaction", func(o tree) {
		status, _ := o["status"].(tree)
		if status == nil {
			status = tree{}
			o["status"] = status
		}
		status["version"] = number(status["version"]) + 1
		change(status)
	})
}

// move moves an item.
func move(status tree, i int, to api.ItemState) {
	item := status["items"].([]any)[i].(tree)
	item["state"] = string(to)
	item["prepared"] = to != api.ItemPending
	item["committed"] = to == api.ItemCommitted || to == api.ItemRollingBack || to == api.ItemUnresolved
	item["rolledBack"] = to == api.ItemRolledBack
}

func lockOf(ref Ref) Ref { return Ref{leases, ns, "janus-lock-" + ref.Name} }

// breaches of some evidence.
func (w *world) breaches() []Breach { return Judge(w.evidence) }

// expect finds a breach of a guarantee.
func expect(t *testing.T, found []Breach, guarantee, message string) {
	t.Helper()
	for _, b := range found {
		if b.Guarantee == guarantee && strings.Contains(b.Message, message) {
			return
		}
	}
	t.Errorf("want %s: …%s…, got:\n%s", guarantee, message, lines(found))
}

func lines(found []Breach) string {
	var out strings.Builder
	for _, b := range found {
		fmt.Fprintf(&out, "  %s: %s\n", b.Guarantee, b.Message)
	}
	return out.String()
}
