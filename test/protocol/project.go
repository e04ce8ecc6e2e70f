package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/oracle"
)

// Project returns the trace of the first Transaction of a run. Its error says what the model has no
// part for.
func Project(e oracle.Evidence, c Circumstances) (Trace, error) {
	p := &projection{run: e.Runs[0], circumstances: c}
	if len(p.run.Spec.Changes) != 2 {
		return Trace{}, errors.New("a Transaction of the model has two changes")
	}
	for i, change := range p.run.Spec.Changes {
		if p.trace.kinds[i] = kindOf[change.Type]; p.trace.kinds[i] == 0 {
			return Trace{}, fmt.Errorf("the model has no %s", change.Type)
		}
	}
	p.trace.window, p.trace.processes, p.trace.writer = 2, max(1, c.Processes), nobody
	if c.Window == 1 {
		p.trace.window = 1
	}
	p.trace.late, p.trace.lost = c.GivenUp, c.GivenUp
	if c.Overdue {
		p.trace.overdue = 1
	}
	for _, s := range oracle.Steps(e, 0) {
		if err := p.enter(s); err != nil {
			return Trace{}, err
		}
	}
	if !p.begun {
		return Trace{}, errors.New("it was never Preparing")
	}
	for i := range e.Calls {
		p.count(&e.Calls[i])
	}
	return p.trace, nil
}

// projection makes a trace.
type projection struct {
	run           oracle.Run
	circumstances Circumstances
	trace         Trace
	begun, ended  bool
	last          Event // of the Transaction
	// first are the values of the targets before, and changed those that the changes made.
	first, changed [2]any
}

// enter adds one version.
func (p *projection) enter(s oracle.Step) error {
	if s.Item < 0 {
		return p.enterStatus(s)
	}
	obj := s.Object.Object
	if !p.begun {
		if p.first[s.Item] = p.valuesOf(s.Item, obj); s.Deleted {
			p.first[s.Item] = nil
		}
		return nil
	}
	if s.By != nil && p.changed[s.Item] == nil && p.trace.kinds[s.Item] != doDelete {
		p.changed[s.Item] = p.valuesOf(s.Item, obj)
	}
	if s.By == nil && s.Before != nil && !s.Deleted && p.valueOf(s.Item, obj) == p.valueOf(s.Item, s.Before.Object.Object) && !reflect.DeepEqual(rest(obj), rest(s.Before.Object.Object)) {
		return errors.New("another client of the model writes the status of a target, or fields of the change")
	}
	event := Event{What: byOther, By: processOther, Item: s.Item}
	if !s.Deleted {
		event.UID, event.Value, event.Manager = 1, p.valueOf(s.Item, obj), p.managed(s.Item, obj)
	}
	switch {
	case s.By != nil && s.By.Subresource == "status":
		return nil // The status of what was re-created.
	case s.By == nil && s.Deleted && p.trace.kinds[s.Item] == doDelete:
		return errors.New("a deletion does not say whose it is, which is a known limit")
	case s.By == nil:
		p.trace.foreign++
	default:
		event.What, event.By = p.requestOf(s), p.processOf(s.By)
	}
	p.trace.Events = append(p.trace.Events, event)
	return nil
}

func (p *projection) enterStatus(s oracle.Step) error {
	if s.Deleted || p.ended {
		return nil
	}
	var t api.Transaction
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(s.Object.Object, &t); err != nil {
		return fmt.Errorf("read the Transaction: %w", err)
	}
	switch {
	case !p.begun && t.Status.Phase != api.PhasePreparing:
		return nil
	case !p.begun:
		if p.begun = true; s.By != nil {
			p.trace.writer = p.processOf(s.By) - processFirst
		}
		return nil
	case s.By == nil:
		return errors.New("another client of the model does not write the Transaction")
	}
	event := Event{What: status, Phase: phaseOf[t.Status.Phase], State0: itemStateOf[t.Status.Items[0].State], State1: itemStateOf[t.Status.Items[1].State]}
	if event.Phase <= prepared && fails(&t) {
		event.Phase = failing
	}
	if slices.Contains(t.Finalizers, api.Finalizer) {
		event.Kept = 1
	}
	if p.processOf(s.By) == processNetwork && p.last.Phase <= preparing && event.Phase != preparing && event.Phase != failing {
		return errors.New("no status write of Preparing lands late in the model")
	}
	if event == p.last {
		p.trace.waits++ // Or it was taken over.
	}
	p.last = event
	event.By = p.processOf(s.By)
	p.ended = t.Status.Phase.Terminal()
	p.trace.Events = append(p.trace.Events, event)
	return nil
}

// fails reports whether it is on record that a Transaction fails that has not ended: why, in place of a phase.
func fails(t *api.Transaction) bool {
	c := meta.FindStatusCondition(t.Status.Conditions, api.ConditionSucceeded)
	return c != nil && c.Status == metav1.ConditionUnknown && c.Reason != string(api.PhasePending) && phaseOf[api.Phase(c.Reason)] == 0
}

// processOf is the process of the model that does what a call has done: a late request is the network's.
func (p *projection) processOf(c *faultinject.Call) int {
	if c.Fault == faultinject.Late || c.Fault == faultinject.LateAfterRestart {
		return processNetwork
	}
	if p.circumstances.Slot == nil {
		return processFirst
	}
	return processFirst + p.circumstances.Slot(c.Process)
}

// requestOf is the request that has made a version of a target.
func (p *projection) requestOf(s oracle.Step) int {
	change := p.run.Spec.Changes[s.Item].Type
	switch s.By.Method {
	case "POST":
		if change == api.Create {
			return doCreate
		}
		return remake
	case "DELETE":
		if change == api.Delete {
			return doDelete
		}
		return unmake
	}
	var sent struct{ Kind string }
	_ = json.Unmarshal(s.By.Body, &sent) // A JSON patch has no kind.
	if change == api.Patch && s.By.FieldManager == p.manager(s.Item) && sent.Kind != "" {
		return doPatch
	}
	if s.Before != nil && p.valueOf(s.Item, s.Before.Object.Object) != p.valueOf(s.Item, s.Object.Object) {
		return restore
	}
	return owners
}

// valueOf says whose values the fields of a change have.
func (p *projection) valueOf(item int, object map[string]any) int {
	switch values := p.valuesOf(item, object); {
	case reflect.DeepEqual(values, p.first[item]):
		return before
	case reflect.DeepEqual(values, p.changed[item]):
		return changed
	default:
		return theirs
	}
}

// valuesOf are the data of an object at the keys that a change sets; all of them, and what else is said of
// an object that is made, or deleted: a rollback keeps what another client has added to it.
func (p *projection) valuesOf(item int, object map[string]any) any {
	data, _ := object["data"].(map[string]any)
	change := p.run.Spec.Changes[item]
	if change.Type != api.Patch {
		obj := &unstructured.Unstructured{Object: object}
		said := maps.Clone(obj.GetAnnotations())
		maps.DeleteFunc(said, func(key, _ string) bool { return strings.Contains(key, "janus.io/") })
		if len(data)+len(said)+len(obj.GetLabels()) == 0 {
			return nil
		}
		return fmt.Sprint(data, said, obj.GetLabels())
	}
	var content struct{ Data map[string]any }
	_ = json.Unmarshal(change.Content.Raw, &content)
	out := map[string]any{}
	for key := range content.Data {
		out[key] = data[key]
	}
	return out
}

// rest is what others write of an object, beside its status.
func rest(object map[string]any) map[string]any {
	out, obj := maps.Clone(object), &unstructured.Unstructured{Object: object}
	delete(out, "status")
	out["metadata"] = []any{obj.GetLabels(), obj.GetAnnotations()}
	return out
}

// managed reports whether the field manager of an item is on an object.
func (p *projection) managed(item int, object map[string]any) int {
	for _, entry := range (&unstructured.Unstructured{Object: object}).GetManagedFields() {
		if entry.Manager == p.manager(item) {
			return 1
		}
	}
	return 0
}

// manager is the field manager of an item.
func (p *projection) manager(item int) string { return fmt.Sprintf("janus-%.8s-%d", p.run.UID, item) }

// count notes what may have happened at a call and shows nowhere else.
func (p *projection) count(c *faultinject.Call) {
	switch c.Fault {
	case faultinject.CrashBefore, faultinject.CrashAfter:
		p.trace.crashes++
	case faultinject.LateAfterRestart:
		p.trace.crashes++
		p.trace.late++
	case faultinject.Late, faultinject.Failed:
		p.trace.late++
	case faultinject.LostReply, faultinject.FailedApplied, faultinject.TimedOutApplied:
		p.trace.lost++
	}
	if c.Kind == faultinject.Read && c.Fault != faultinject.NoFault {
		// What a deletion has done is read, and what a refusal means: then nothing is known of the request.
		p.trace.lost++
		p.trace.late++
	}
	if c.Kind == faultinject.Write && !c.DryRun && c.User != "" && c.Code/100 == 4 && c.Code != 409 && c.Code != 429 {
		p.trace.denied++
	}
}
