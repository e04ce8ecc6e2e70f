package snapshot

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// Standing says how much of a change is to be seen on an object.
type Standing int

const (
	// AtBefore means that every field of the change has its old value.
	AtBefore Standing = iota
	// AtAfter means that every field of the change has its new value.
	AtAfter
	// Mixed means neither.
	Mixed
)

// Stand compares the fields that the step from before to after alters with what
// they are in live. A change that alters nothing stands at after.
// What controllers are known to write does not count.
func Stand(before, after, live *unstructured.Unstructured) Standing {
	s := stander{}
	s.value(nil, Strip(before).Object, Strip(after).Object, Strip(live).Object)
	switch {
	case s.other || s.old && s.new:
		return Mixed
	case s.old:
		return AtBefore
	default:
		return AtAfter
	}
}

type stander struct{ old, new, other bool }

func (s *stander) value(path fieldpath.Path, before, after, live any) {
	if reflect.DeepEqual(before, after) || controllerFields.Has(path) {
		return
	}
	b, bok := asMap(before)
	a, aok := asMap(after)
	l, lok := asMap(live)
	switch {
	case bok && aok && lok && len(b)+len(a) > 0:
		for _, name := range fieldNames(b, a) {
			s.value(append(path.Copy(), fieldpath.PathElement{FieldName: &name}), field(b, name), field(a, name), field(l, name))
		}
	case reflect.DeepEqual(live, before):
		s.old = true
	case reflect.DeepEqual(live, after):
		s.new = true
	default:
		s.other = true
	}
}
