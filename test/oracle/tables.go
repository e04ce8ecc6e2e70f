package oracle

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// How a Lease holds the locks of a namespace.
const (
	tableName    = "janus-lock-namespace"
	tableEntries = "janus.io/leases"
)

// openTables has each entry of a table be an object, whose versions are the writings of the entry.
func (c *trial) openTables() {
	for ref, table := range maps.Clone(c.objects) {
		if ref.Resource != leases || ref.Name != tableName {
			continue
		}
		there := map[string]bool{}
		for _, v := range table.versions {
			c.openTable(v, there)
		}
	}
}

// openTable notes what a version of a table has changed of the entries that were there.
func (c *trial) openTable(v *version, there map[string]bool) {
	now := map[string]*unstructured.Unstructured{}
	if !v.Deleted {
		now = readTable(v)
	}
	for name := range there {
		ref := Ref{Resource: leases, Namespace: v.Ref.Namespace, Name: name}
		last := c.objects[ref].last()
		if is := now[name]; is == nil || string(is.GetUID()) != last.uid {
			c.enterEntry(v, ref, last.Object, true)
			delete(there, name)
		}
	}
	for name, lease := range now {
		ref := Ref{Resource: leases, Namespace: v.Ref.Namespace, Name: name}
		if last := c.objects[ref].last(); last == nil || last.resourceVersion() != lease.GetResourceVersion() {
			c.enterEntry(v, ref, lease, false)
			there[name] = true
		}
	}
}

// enterEntry notes a version of an entry, and as what request it was written.
func (c *trial) enterEntry(v *version, ref Ref, lease *unstructured.Unstructured, deleted bool) {
	o := c.objects[ref]
	if o == nil {
		o = &object{ref: ref}
		c.objects[ref] = o
	}
	made := &version{
		Version: &Version{Ref: ref, Revision: v.Revision, Object: lease, Deleted: deleted},
		before:  o.last(), uid: string(lease.GetUID()), by: v.by,
	}
	o.versions = append(o.versions, made)
	if v.by == nil {
		return
	}
	call := *v.by.Call
	if call.Method = "PUT"; deleted {
		call.Method = "DELETE"
	}
	c.entries = append(c.entries, &write{Call: &call, ref: ref, made: made, item: -1})
}

// readTable reads a table.
func readTable(v *version) map[string]*unstructured.Unstructured {
	var groups []struct {
		Spec        map[string]any
		Labels      map[string]any
		Annotations map[string]any
		Leases      map[string]string
	}
	annotations, _ := at(v.Object.Object, "metadata", "annotations").(map[string]any)
	text, _ := annotations[tableEntries].(string)
	out := map[string]*unstructured.Unstructured{}
	if json.Unmarshal([]byte(text), &groups) != nil {
		return out
	}
	for _, g := range groups {
		for name, versions := range g.Leases {
			written := strings.Fields(versions)
			out[name] = &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{
					"namespace": v.Ref.Namespace, "name": name, "uid": v.uid + "/" + written[0],
					"resourceVersion": written[len(written)-1], "labels": g.Labels, "annotations": g.Annotations,
				},
				"spec": g.Spec,
			}}
		}
	}
	return out
}

// lockWrites are the writes of locks, alone or in a table.
func (c *trial) lockWrites() []*write {
	return append(slices.Clone(c.writes), c.entries...)
}
