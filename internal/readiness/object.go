package readiness

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// object is read field by field: one that is missing, or that is not of the type that it
// should be, counts as its default.
type object struct {
	fields map[string]any
	wait   Wait
}

func (o object) has(path ...string) bool {
	_, found, err := unstructured.NestedFieldNoCopy(o.fields, path...)
	return found && err == nil
}

func (o object) number(otherwise int64, path ...string) int64 {
	value, _, _ := unstructured.NestedFieldNoCopy(o.fields, path...)
	switch n := value.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	default:
		return otherwise
	}
}

func (o object) text(path ...string) string {
	value, _, _ := unstructured.NestedString(o.fields, path...)
	return value
}

func (o object) truth(path ...string) bool {
	value, _, _ := unstructured.NestedBool(o.fields, path...)
	return value
}

func (o object) list(path ...string) []object {
	value, _, _ := unstructured.NestedFieldNoCopy(o.fields, path...)
	entries, _ := value.([]any)
	var out []object
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		out = append(out, object{fields: fields})
	}
	return out
}

// condition is one of status.conditions.
type condition struct {
	status, reason, message string
	observed                int64
	updated                 time.Time // to the second; zero if the kind does not say
}

func (o object) condition(kind string) (condition, bool) {
	for _, c := range o.list("status", "conditions") {
		if c.text("type") == kind {
			updated, _ := time.Parse(time.RFC3339, c.text("lastUpdateTime"))
			return condition{c.text("status"), c.text("reason"), c.text("message"), c.number(0, "observedGeneration"), updated}, true
		}
	}
	return condition{}, false
}

// is reports whether a condition has the status True.
func (o object) is(kind string) (condition, bool) {
	c, _ := o.condition(kind)
	return c, c.status == "True"
}

// because is why a condition is as it is, to follow a colon.
func (c condition) because() string {
	switch {
	case c.reason == "":
		return c.message
	case c.message == "":
		return c.reason
	default:
		return c.reason + ": " + c.message
	}
}
