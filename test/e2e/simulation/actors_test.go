package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/apisim"
)

// actors are all who act beside Janus: people, controllers, and the tester. Their
// requests take effect at once.
type actors struct {
	world  *world
	client dynamic.Interface
	// may is what the Transactions' ServiceAccount may do at present.
	may   bool
	count int
}

func newActors(w *world) *actors {
	return &actors{world: w, client: clientOf(w.server), may: true}
}

func clientOf(server *apisim.Server) dynamic.Interface {
	client, err := apisim.NewDynamic(&rest.Config{Host: "http://model", UserAgent: "somebody", QPS: -1, Transport: server})
	if err != nil {
		panic(err) // the configuration is a constant
	}
	return client
}

func (a *actors) apply(obj *unstructured.Unstructured, manager string) error {
	_, err := a.of(obj).Apply(context.Background(), obj.GetName(), obj, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}

func (a *actors) annotate(obj *unstructured.Unstructured, manager, key, value string) error {
	return a.merge(obj, manager, map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
}

func (a *actors) merge(obj *unstructured.Unstructured, manager string, patch map[string]any, subresource ...string) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	_, err = a.of(obj).Patch(context.Background(), obj.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: manager}, subresource...)
	return err
}

func (a *actors) of(obj *unstructured.Unstructured) dynamic.ResourceInterface {
	return a.client.Resource(resourceOf(obj.GroupVersionKind())).Namespace(namespace)
}

func resourceOf(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	return gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s")
}

// submit creates a Transaction.
func (a *actors) submit(name string, spec api.TransactionSpec) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		return fmt.Errorf("encode Transaction %s: %w", name, err)
	}
	txn := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	txn.SetGroupVersionKind(api.Kind)
	txn.SetName(name)
	if _, err = a.of(txn).Create(context.Background(), txn, metav1.CreateOptions{FieldManager: "kubectl"}); err != nil {
		return fmt.Errorf("create Transaction %s: %w", name, err)
	}
	return nil
}

// An act is something that another client does. It is no error if it cannot be done.
type act struct {
	name string
	do   func(a *actors) error
}

var acts = []act{
	{"annotate", func(a *actors) error { return a.annotate(a.target(), "somebody", a.fresh("note"), "new") }},
	{"write", func(a *actors) error {
		return a.merge(a.target(), "somebody", map[string]any{"data": map[string]any{a.key(): a.fresh("theirs")}})
	}},
	{"claim", func(a *actors) error {
		obj := a.target()
		live := a.world.server.Get(resourceOf(obj.GroupVersionKind()), namespace, obj.GetName())
		if live != nil && live.Object["data"] != nil { // null would make an owner of what is not there
			obj.Object["data"] = live.Object["data"]
		}
		return a.apply(obj, "gitops")
	}},
	{"delete", func(a *actors) error { return a.remove(a.target()) }},
	{"replace", func(a *actors) error { return a.replace(a.target()) }},
	{"add part", func(a *actors) error { return a.setParts(append(partsOf(a.world), part(a.fresh("theirs"), 9))) }},
	{"remove part", func(a *actors) error {
		parts := partsOf(a.world)
		if len(parts) == 0 {
			return nil
		}
		n := a.world.random.IntN(len(parts))
		return a.setParts(slices.Delete(parts, n, n+1))
	}},
	{"create", func(a *actors) error {
		obj := a.target()
		obj.Object["data"] = map[string]any{a.key(): a.fresh("made")}
		_, err := a.of(obj).Create(context.Background(), obj, metav1.CreateOptions{FieldManager: "somebody"})
		return err
	}},
	{"status", func(a *actors) error {
		obj := a.target()
		obj.SetGroupVersionKind(widget)
		return a.merge(obj, "operator", map[string]any{"status": map[string]any{"seen": a.fresh("seen")}}, "status")
	}},
	{"delete Transaction", func(a *actors) error {
		propagation := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}[a.world.random.IntN(3)]
		return a.of(a.txn()).Delete(context.Background(), a.txn().GetName(), metav1.DeleteOptions{PropagationPolicy: &propagation})
	}},
	{"edit spec", func(a *actors) error {
		return a.merge(a.txn(), "somebody", map[string]any{"spec": map[string]any{"timeout": a.fresh("1") + "m"}})
	}},
	{"suspend", func(a *actors) error { return a.edit("suspend", true) }},
	{"resume", func(a *actors) error { return a.edit("suspend", false) }},
	{"cancel", func(a *actors) error { return a.edit("cancel", "Rollback") }},
	{"stop", func(a *actors) error { return a.edit("cancel", "Stop") }},
	{"take rights", func(a *actors) error { a.may = false; return nil }},
	{"delete ServiceAccount", func(a *actors) error { return a.remove(a.account()) }},
	{"steal lock", (*actors).stealLock},
	{"delete lock", (*actors).deleteLock},
	{"tamper", (*actors).tamper},
	{"finish", func(a *actors) error {
		return a.merge(a.target(), "controller", map[string]any{"metadata": map[string]any{"finalizers": nil}})
	}},
	// Within a process time is monotonic, whatever is done to the clock of its machine. But
	// the next one may have another clock.
	{"turn clock", func(a *actors) error {
		a.world.skew = time.Duration(a.world.random.IntN(1200)-600) * time.Second
		a.world.turned = true
		return nil
	}},
	{"freeze", func(a *actors) error {
		m := a.world.random.IntN(len(a.world.machines))
		a.world.frozen[m] = time.Now().Add(time.Duration(a.world.random.IntN(90)) * time.Second)
		return nil
	}},
	{"make room", func(a *actors) error { return a.interrupt(false) }},
	{"hand over", func(a *actors) error { return a.interrupt(true) }},
	{"crash", func(a *actors) error {
		a.world.machines[a.world.random.IntN(len(a.world.machines))].process.Crash()
		return nil
	}},
	{"crash", func(a *actors) error {
		a.world.machines[len(a.world.machines)-1].process.Crash()
		return nil
	}},
}

// interrupt makes a machine end its run of a Transaction between two steps.
func (a *actors) interrupt(give bool) error {
	names := a.world.names()
	a.world.machines[a.world.random.IntN(len(a.world.machines))].interrupt(names[a.world.random.IntN(len(names))], give)
	return nil
}

// replace puts another object in place of one, with the same content.
func (a *actors) replace(obj *unstructured.Unstructured) error {
	live := a.world.server.Get(resourceOf(obj.GroupVersionKind()), namespace, obj.GetName())
	if live == nil {
		return nil
	}
	for _, field := range []string{"data", "parts"} {
		if value, ok := live.Object[field]; ok {
			obj.Object[field] = runtime.DeepCopyJSONValue(value)
		}
	}
	obj.SetAnnotations(map[string]string{"replaced": "yes"})
	if err := a.remove(obj); err != nil {
		return err
	}
	_, err := a.of(obj).Create(context.Background(), obj, metav1.CreateOptions{FieldManager: "somebody"})
	return err
}

// live is a thing as it is stored; nil if it is not there.
func (a *actors) live(t thing) *unstructured.Unstructured {
	return a.world.server.Get(resourceOf(t.gvk), namespace, t.name)
}

// setParts writes the list of the widget.
func (a *actors) setParts(parts []any) error {
	obj := pool[4].with(nil)
	return a.merge(obj, "somebody", map[string]any{"parts": parts})
}

// edit sets what may be changed in the spec of a Transaction.
func (a *actors) edit(field string, value any) error {
	return a.merge(a.txn(), "somebody", map[string]any{"spec": map[string]any{field: value}})
}

// restore gives back, once faults have stopped, what is needed to come to an end.
func (a *actors) restore() {
	a.may = true
	account := a.account()
	_, err := a.of(account).Create(context.Background(), account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		a.world.problem = fmt.Sprintf("make the ServiceAccount again: %v", err)
	}
	if err := a.edit("suspend", false); err != nil && !apierrors.IsNotFound(err) {
		a.world.problem = fmt.Sprintf("let the Transaction go on: %v", err)
	}
	clear(a.world.frozen)
	a.bringBack()
	for _, t := range pool {
		obj := t.with(nil)
		delete(obj.Object, "data")
		_ = a.merge(obj, "controller", map[string]any{"metadata": map[string]any{"finalizers": nil}})
	}
}

func (a *actors) account() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "deployer"}}}
	return obj
}

func (a *actors) txn() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(api.Kind)
	obj.SetName(transactionName(0))
	return obj
}

// target is the name of one of the targets of the scenario.
func (a *actors) target() *unstructured.Unstructured {
	refs := a.world.plan.scenario.targets()
	ref := refs[a.world.random.IntN(len(refs))]
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetAPIVersion(ref.APIVersion)
	obj.SetKind(ref.Kind)
	obj.SetName(ref.Name)
	return obj
}

func (a *actors) key() string { return keys[a.world.random.IntN(len(keys))] }

// fresh is a value that nobody else writes.
func (a *actors) fresh(what string) string {
	a.count++
	return fmt.Sprintf("%s%d", what, a.count)
}

func (a *actors) remove(obj *unstructured.Unstructured) error {
	return a.of(obj).Delete(context.Background(), obj.GetName(), metav1.DeleteOptions{})
}

// admit refuses to create, other than for a try, what is called refused.
func (w *world) admit(a apisim.Admission) error {
	if err := guardApproval(a); err != nil {
		return err
	}
	if a.Operation == "CREATE" && !a.DryRun && strings.HasPrefix(a.Name, "refused") {
		return apierrors.NewForbidden(schema.GroupResource{Resource: a.Resource}, a.Name, fmt.Errorf("a policy of the test"))
	}
	return nil
}

// allowed says what the ServiceAccount of the Transactions may do.
func (w *world) allowed(a apisim.Access) bool {
	return w.actors == nil || w.actors.may || !strings.HasSuffix(a.User, ":deployer")
}
