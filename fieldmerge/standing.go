package fieldmerge

import (
	"reflect"
	"slices"
)

// Standing says how much of a change is to be seen on an object.
type Standing int

const (
	// AtBefore means that every field of the change has its old value.
	AtBefore Standing = iota
	// AtAfter means that every field of the change has its new value.
	AtAfter
	// Alike means the same, but by the hand of another client: the change would have made
	// its manager the owner of a field.
	Alike
	// Mixed means neither.
	Mixed
)

// Stand compares the fields that the step from before to after alters with what
// they are in live. A change that alters nothing stands at after.
// What controllers are known to write does not count.
func (i Images) Stand() Standing {
	types, whole := root(i.Type)
	s := stander{Images: i, types: types}
	s.value(whole, i.content(i.Before), i.content(i.After), i.content(i.Live))
	switch {
	case s.other || s.old && s.new:
		return Mixed
	case s.old:
		return AtBefore
	case s.set && Tracked(i.Live) && !Owned(i.Live, i.Ours):
		return Alike
	default:
		return AtAfter
	}
}

// Replaceable reports whether live would look as it does too if the change had not been made and another
// client had replaced the object: all that the change did was to remove fields, and there are others that
// were neither there before nor after it.
func (i Images) Replaceable() bool {
	types, whole := root(i.Type)
	s := stander{Images: i, types: types}
	before, after, live := i.content(i.Before), i.content(i.After), i.content(i.Live)
	s.value(whole, before, after, live)
	return !s.set && s.added(whole, before, after, live)
}

type stander struct {
	Images
	types           typing
	old, new, other bool
	set             bool // a field has its new value, and is not one that the change removed
}

func (s *stander) value(n node, before, after, live any) {
	if reflect.DeepEqual(before, after) || s.isControllers(n.path) {
		return
	}
	if parts, ok := s.types.split(n, before, after, live); ok && !empty(before, after) {
		for _, p := range parts {
			s.value(p.node, p.values[0], p.values[1], p.values[2])
		}
		if isList(live) && reordered(parts, 0, 1) {
			s.order(parts)
		}
		return
	}
	switch {
	case reflect.DeepEqual(live, before):
		s.old = true
	case reflect.DeepEqual(live, after):
		s.new = true
		if _, removed := after.(absent); !removed {
			s.set = true
		}
	default:
		s.other = true
	}
}

// added reports whether there is something in live that is in neither of the others.
func (s *stander) added(n node, before, after, live any) bool {
	switch {
	case live == (absent{}), reflect.DeepEqual(live, before), reflect.DeepEqual(live, after), s.isControllers(n.path):
		return false
	case before == (absent{}) && after == (absent{}):
		return true
	}
	parts, _ := s.types.split(n, before, after, live)
	return slices.ContainsFunc(parts, func(p child) bool { return s.added(p.node, p.values[0], p.values[1], p.values[2]) })
}

// order looks where a list stands of which the change altered the order.
func (s *stander) order(items []child) {
	asBefore, asAfter := !reordered(items, 0, 2), !reordered(items, 1, 2)
	switch {
	case asBefore && !asAfter:
		s.old = true
	case asAfter && !asBefore:
		s.new = true
	case !asBefore && !asAfter:
		s.other = true
	}
}

// empty reports whether none of the values has anything in it.
func empty(values ...any) bool {
	for _, v := range values {
		object, _ := v.(map[string]any)
		list, _ := v.([]any)
		if len(object)+len(list) > 0 {
			return false
		}
	}
	return true
}
