package main

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// schema is what the page tells of a schema in the CRD.
type schema struct {
	Type                 string            `json:"type"`
	Format               string            `json:"format"`
	Description          string            `json:"description"`
	Default              any               `json:"default"`
	Enum                 []string          `json:"enum"`
	Required             []string          `json:"required"`
	Minimum              *float64          `json:"minimum"`
	Maximum              *float64          `json:"maximum"`
	MaxItems             *int64            `json:"maxItems"`
	MaxLength            *int64            `json:"maxLength"`
	Properties           map[string]schema `json:"properties"`
	Items                *schema           `json:"items"`
	AdditionalProperties *schema           `json:"additionalProperties"`
	IntOrString          bool              `json:"x-kubernetes-int-or-string"`
	Preserve             bool              `json:"x-kubernetes-preserve-unknown-fields"`
	Rules                []struct {
		Message string `json:"message"`
	} `json:"x-kubernetes-validations"`
}

const fieldsIntro = `# Transaction: every field

<!-- Generated from the CRD by make generate. Do not edit. -->

` + "`kubectl explain txn.spec` and `kubectl explain txn.status` print the same. The short name is `txn`, and" + `
` + "`kubectl get txn -A --field-selector status.phase=Failed` works. [Reasons](reasons.md) lists what `reason` can say." + `

Only ` + "`suspend` and `cancel`" + ` can be changed once the Transaction exists. The versions ` + "`v1alpha1` and `v1beta1`" + ` have
[the same fields](../storage-version.md).
`

const packageFieldsIntro = `# PackageTransaction: every field

<!-- Generated from the CRD by make generate. Do not edit. -->

` + "`kubectl explain ptxn.spec` and `kubectl explain ptxn.status` print the same. The short name is `ptxn`." + `
[Change Crossplane packages](../packages.md#as-an-object-of-the-cluster) shows how it is used, and lists the reasons of
its conditions.

Nothing of the spec can be changed once the PackageTransaction exists.
`

// fieldsPage lists the fields of the spec and of the status.
func fieldsPage(crd []byte, intro, one string) (string, error) {
	var read struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					Schema schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(crd, &read); err != nil {
		return "", fmt.Errorf("read the CRD: %w", err)
	}
	root := read.Spec.Versions[0].Schema.Schema
	out := intro
	for _, part := range []string{"spec", "status"} {
		out += "\n## " + part + "\n\n| field | type | default | meaning |\n|---|---|---|---|\n"
		top := root.Properties[part]
		rows(&out, "", top)
		if part == "spec" {
			out += rules(top, one)
		}
	}
	return out, nil
}

// rows lists the fields below a schema, those that are required first.
func rows(out *string, path string, s schema) {
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if x, y := slices.Contains(s.Required, a), slices.Contains(s.Required, b); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		field := s.Properties[name]
		at := path + name
		below := field
		if field.Items != nil && len(field.Items.Properties) > 0 {
			at, below = at+"[]", *field.Items
		}
		*out += fmt.Sprintf("| `%s` | %s | %s | %s |\n", at, typeOf(field), defaultOf(field, slices.Contains(s.Required, name)), meaning(name, field))
		rows(out, at+".", below)
	}
}

func typeOf(s schema) string {
	switch {
	case len(s.Enum) > 0:
		return "`" + strings.Join(s.Enum, "`, `") + "`"
	case s.IntOrString:
		return "integer or string"
	case s.Preserve:
		return "any object"
	case s.Type == "array" && s.Items != nil:
		return "list of " + plural(typeOf(*s.Items))
	case s.Type == "object" && s.AdditionalProperties != nil:
		return "map of " + plural(typeOf(*s.AdditionalProperties))
	case s.Format == "date-time":
		return "time"
	}
	bounds := ""
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		bounds = fmt.Sprintf(", %.0f to %.0f", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		bounds = fmt.Sprintf(", at least %.0f", *s.Minimum)
	}
	return s.Type + bounds
}

func plural(name string) string {
	if strings.HasPrefix(name, "`") {
		return name
	}
	return name + "s"
}

func defaultOf(s schema, required bool) string {
	switch {
	case s.Default != nil:
		return fmt.Sprintf("`%v`", s.Default)
	case required:
		return "required"
	default:
		return ""
	}
}

// meaning is the description as one line of a table, without the name that it begins with.
func meaning(name string, s schema) string {
	text, found := strings.CutPrefix(s.Description, name+" is ")
	if found && text != "" {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(p), " ")
	}
	text = strings.ReplaceAll(strings.Join(paragraphs, "<br>"), "|", `\|`)
	switch {
	case s.MaxItems != nil && s.Type == "array":
		text += fmt.Sprintf(" At most %d.", *s.MaxItems)
	case s.MaxLength != nil:
		text += fmt.Sprintf(" At most %d characters.", *s.MaxLength)
	}
	return text
}

// rules lists what the API server checks beside the types.
func rules(s schema, one string) string {
	var messages []string
	var walk func(s schema)
	walk = func(s schema) {
		for _, r := range s.Rules {
			if r.Message != "" && !slices.Contains(messages, r.Message) {
				messages = append(messages, r.Message)
			}
		}
		for _, p := range s.Properties {
			walk(p)
		}
		if s.Items != nil {
			walk(*s.Items)
		}
	}
	walk(s)
	slices.Sort(messages)
	out := "\nThe API server refuses " + one + " that breaks one of these rules:\n\n"
	for _, m := range messages {
		out += "- " + m + "\n"
	}
	return out
}
