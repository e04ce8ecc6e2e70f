package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Rights that are lacking are told once and together: a sentence for each verb of each object
// would hide what has to be granted.

// told are the messages of what is wrong with one item. Several rights that it lacks are one
// message.
func told(problems []error) []string {
	verbs := missingVerbs(problems)
	var out []string
	said := false
	for _, err := range problems {
		lack := errclass.LackOf(err)
		switch {
		case lack == nil || len(verbs) == 1:
			out = append(out, err.Error())
		case !said:
			said = true
			all := inWords(verbs)
			out = append(out, fmt.Sprintf("ServiceAccount %s may not %s %s; grant it %s on %s", lack.Account, all, targetOf(err), all, lack.Resource))
		}
	}
	return out
}

func targetOf(err error) string {
	var own *errclass.Error
	if errors.As(err, &own) {
		return own.Target
	}
	return ""
}

// missingVerbs are those that the ServiceAccount lacks on the target of an item.
func missingVerbs(problems []error) []string {
	var out []string
	for _, err := range problems {
		if lack := errclass.LackOf(err); lack != nil && !slices.Contains(out, lack.Verb) {
			out = append(out, lack.Verb)
		}
	}
	return out
}

// lacks are the rights that are lacking, by item.
func lacks(problems []Problem) map[int][]*errclass.Lack {
	out := map[int][]*errclass.Lack{}
	for _, p := range problems {
		if lack := errclass.LackOf(p.Err); lack != nil {
			out[p.Item] = append(out[p.Item], lack)
		}
	}
	return out
}

// lackedBy says in one sentence which rights several items lack: for the same verbs, the
// resources with the names of the objects.
func lackedBy(items []api.Item, lacking map[int][]*errclass.Lack) string {
	account := ""
	verbs, objects := map[api.Target][]string{}, []api.Target{} // An object may be that of several items.
	resource := map[api.Target]string{}
	for _, i := range slices.Sorted(maps.Keys(lacking)) {
		of := items[i].Target.Identity()
		if _, known := verbs[of]; !known {
			objects = append(objects, of)
		}
		for _, lack := range lacking[i] {
			account, resource[of] = lack.Account, lack.Resource
			if !slices.Contains(verbs[of], lack.Verb) {
				verbs[of] = append(verbs[of], lack.Verb)
			}
		}
	}
	names := map[string]map[string][]string{} // By the verbs, and by the resource.
	var order []string
	for _, of := range objects {
		all := inWords(verbs[of])
		if names[all] == nil {
			names[all], order = map[string][]string{}, append(order, all)
		}
		names[all][resource[of]] = append(names[all][resource[of]], of.Name)
	}
	var texts []string
	for _, all := range order {
		var objects []string
		for _, resource := range slices.Sorted(maps.Keys(names[all])) {
			objects = append(objects, fmt.Sprintf("%s (%s)", resource, few(names[all][resource])))
		}
		texts = append(texts, all+" "+strings.Join(objects, ", "))
	}
	return fmt.Sprintf("ServiceAccount %s may not %s; grant it these rights: kubectl janus rbac prints them", account, strings.Join(texts, "; nor "))
}

// few lists some names of many.
func few(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// inWords joins words as a sentence does.
func inWords(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
