package oracle

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
)

// judgeSecrecy: what only Secrets may hold is nowhere else, however it is written. What
// Janus has stored it has sent: its requests are looked at, with the answers to writes,
// and of the history what it keeps for itself.
func (c *trial) judgeSecrecy() {
	if c.Canary != "" {
		c.judgeValue(disguises(c.Canary), func(*faultinject.Call) bool { return false })
	}
	if c.Hidden != "" {
		c.judgeValue(disguises(c.Hidden), func(call *faultinject.Call) bool {
			ref := refOf(call)
			// What a target was before is tried under another name.
			return len(c.targets[ref]) > 0 && !c.own[ref] || call.DryRun && strings.HasPrefix(ref.Name, "janus-rehearsal-")
		})
	}
}

// judgeValue looks for a value, in some forms, everywhere but in Secrets and in requests that may
// have it.
func (c *trial) judgeValue(forms []string, mayHave func(*faultinject.Call) bool) {
	for i := range c.History {
		v := &c.History[i]
		if v.Object == nil || v.Ref.Resource == "secrets" || !c.says(v.Ref) {
			continue
		}
		for name, value := range v.Object.Object {
			if name == "spec" && v.Ref.Resource == transactions {
				continue // what the user has asked for
			}
			if said := finds(value, forms); said != "" {
				c.breach(Confidentiality, "%s@%d has the content of a Secret in %s: %s", v.Ref, v.Revision, name, said)
				break
			}
		}
	}
	for i := range c.Calls {
		call := &c.Calls[i]
		if call.Resource == "secrets" && !strings.HasPrefix(call.Path, "/apis/") || mayHave(call) {
			continue
		}
		of := strings.HasPrefix(call.Path, "/apis/"+api.GroupVersion.Group+"/")
		if leaks(plain(call.Body), forms, of) {
			c.breach(Confidentiality, "the body of %s has the content of a Secret", call.At)
		}
		if call.Kind != faultinject.Read && leaks(plain(call.Answer), forms, of) {
			c.breach(Confidentiality, "the answer of %s has the content of a Secret", call.At)
		}
	}
	for name, text := range c.Texts {
		for _, form := range forms {
			if i := strings.Index(text, form); i >= 0 {
				c.breach(Confidentiality, "%s has the content of a Secret: …%s", name, text[max(0, i-80):i])
				break
			}
		}
	}
}

// says reports whether an object is one in which Janus says something.
func (c *trial) says(ref Ref) bool {
	return ref.Resource == transactions || ref.Resource == leases || isRevision(ref) || strings.HasPrefix(ref.Resource, "events") ||
		isImageName(ref) && len(c.targets[ref]) == 0
}

// disguises are the ways in which a value can be written down: as it is, in a text
// of JSON or Go, and in base64, alone or inside something larger.
func disguises(canary string) []string {
	out := []string{canary}
	add := func(form string) {
		if len(form) >= 8 && !contains(out, form) {
			out = append(out, form)
		}
	}
	if encoded, err := json.Marshal(canary); err == nil {
		add(string(encoded[1 : len(encoded)-1]))
		if again, err := json.Marshal(string(encoded[1 : len(encoded)-1])); err == nil {
			add(string(again[1 : len(again)-1]))
		}
	}
	quoted := strconv.Quote(canary)
	add(quoted[1 : len(quoted)-1])
	for before := range 3 {
		// Of each alignment only the part that does not depend on what is beside it.
		encoded := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), canary...))
		from := []int{0, 2, 3}[before]
		to := (len(canary) + before) / 3 * 4
		if to > from {
			add(encoded[from:to])
		}
	}
	return out
}

// finds returns the text in which one of some forms is, cut before it; empty for none.
func finds(v any, forms []string) string {
	switch v := v.(type) {
	case string:
		for _, form := range forms {
			if i := strings.Index(v, form); i >= 0 {
				return "…" + v[max(0, i-80):i]
			}
		}
	case map[string]any:
		for name, inner := range v {
			if said := finds(name, forms); said != "" {
				return said
			}
			if said := finds(inner, forms); said != "" {
				return said
			}
		}
	case []any:
		for _, inner := range v {
			if said := finds(inner, forms); said != "" {
				return said
			}
		}
	}
	return ""
}

// leaks reports whether a request or an answer has one of some forms; of a
// Transaction, outside of its spec.
func leaks(content []byte, forms []string, transaction bool) bool {
	if found := hasAny(content, forms); !found || !transaction {
		return found
	}
	return leaksBesideSpec(content, forms)
}

func leaksBesideSpec(content []byte, forms []string) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal(content, &object) != nil {
		return true
	}
	delete(object, "spec")
	for name, value := range object {
		if finds(name, forms) != "" || leaksIn(name, value, forms) {
			return true
		}
	}
	return false
}

// leaksIn looks at one field of a Transaction, or of a list of them. It is decoded only
// if a text in it could be other than it is written.
func leaksIn(name string, value []byte, forms []string) bool {
	if name != "items" && bytes.IndexByte(value, '\\') < 0 && !hasAny(value, forms) {
		return false
	}
	var decoded any
	if json.Unmarshal(value, &decoded) != nil {
		return true
	}
	if items, ok := decoded.([]any); ok && name == "items" {
		for _, item := range items {
			if of, ok := item.(map[string]any); ok {
				delete(of, "spec")
			}
		}
	}
	return finds(decoded, forms) != ""
}

func hasAny(content []byte, forms []string) bool {
	for _, form := range forms {
		if bytes.Contains(content, []byte(form)) {
			return true
		}
	}
	return false
}
