package oracle

import (
	"regexp"
	"slices"
	"strings"

	api "janus.io/janus/api/v1alpha1"
)

// Mutating admission may make something else of what Janus sends. That is no breach where
// the item names the field: a change that is in effect in a warning, a rollback in its
// reason Altered, and where it is a label or an annotation in the message of Restored.

// notStored is how the warnings begin by which a change names what was not stored as its
// content says.
var notStored = regexp.MustCompile(`the API server (?:did|would) not store what the content says: (.*)`)

// mark is a label or an annotation in a message.
var mark = regexp.MustCompile(`\.metadata\.(?:labels|annotations)\.[^,;]+`)

// stored is the content of a change as far as no warning of its item says that it was not
// stored.
func stored(asked map[string]any, of *item) map[string]any {
	var told []string
	for _, w := range of.warnings {
		if found := notStored.FindStringSubmatch(w); found != nil {
			told = append(told, found[1])
		}
	}
	if len(told) == 0 {
		return asked
	}
	out, _ := without(nil, asked, strings.Join(told, "; ")).(map[string]any)
	return out
}

// without leaves out of a value the fields that a text names.
func without(path []string, v any, text string) any {
	fields, ok := v.(map[string]any)
	if len(path) > 0 && mentions(text, dotted(path), !ok) {
		return nil
	}
	if !ok {
		return v
	}
	out := make(map[string]any, len(fields))
	for key, inner := range fields {
		if kept := without(append(path[:len(path):len(path)], key), inner, text); kept != nil {
			out[key] = kept
		}
	}
	return out
}

// mentions reports whether a text names a field or, with parts, something in the list that it
// is: of a list with a part that is not as it was nothing more is known.
func mentions(text, field string, parts bool) bool {
	for rest := text; ; {
		_, after, found := strings.Cut(rest, field)
		if !found {
			return false
		}
		if after == "" || after[0] == ',' || after[0] == ';' || parts && after[0] == '[' {
			return true
		}
		rest = after
	}
}

// restored lists the labels and annotations of which an item that was rolled back says that
// they are not as they were.
func (i *item) restored() []string {
	switch {
	case i.in(api.ItemRolledBack):
		return mark.FindAllString(i.message, -1)
	case i.back != nil:
		return mark.FindAllString(i.message+" "+i.back.message, -1)
	}
	return nil
}

// notAdmitted leaves out the differences that are of what mutating admission may write.
func (c *trial) notAdmitted(found []change, below ...string) []change {
	if len(c.Admitted) == 0 {
		return found
	}
	return slices.DeleteFunc(found, func(d change) bool {
		return excuses(c.Admitted, dotted(append(slices.Clone(below), d.path...)))
	})
}
