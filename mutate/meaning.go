package mutate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// lastApplied is where kubectl apply keeps what it was given: the content a second time, as it was
// written.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// quantities are the fields of which the values are amounts of resources, in the kinds of Kubernetes
// and in those that follow them. The API server writes those of its own kinds in one form; of a
// custom kind it stores what it was given.
var quantities = map[string]bool{"limits": true, "requests": true, "capacity": true, "hard": true}

// Meaning is a digest of the content that a change gives its target: the same for content that
// means the same, such as 1000m of CPU and 1. after is what a dry run of the change answered, so
// defaults are in it. It is empty where that is not known, and for confidential content: the digest
// of a short value tells the value.
func (c Change) Meaning(after *unstructured.Unstructured) string {
	if after == nil || c.Sensitive {
		return ""
	}
	obj := unmarked(after)
	meta, _ := obj.Object["metadata"].(map[string]any)
	leaveOut(meta, "annotations", lastApplied)
	text, err := json.Marshal(meant(obj.Object, false))
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// meant is a value in the form that all have which mean the same. amounts says that it is a map
// of amounts.
func meant(v any, amounts bool) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			_, nested := value.(map[string]any)
			switch {
			case value == nil: // as if it were not there
			case amounts && !nested:
				out[key] = amount(value)
			default:
				out[key] = meant(value, quantities[key])
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = meant(value, false)
		}
		return out
	case float64:
		if whole := int64(v); float64(whole) == v {
			return whole
		}
	}
	return v
}

// huge is an amount that would have thousands of digits, or more than there is memory for.
var huge = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{3,}$|^.{1000}`)

// amount is an amount in its one form; anything else as it is.
func amount(v any) any {
	text := fmt.Sprint(v)
	if _, list := v.([]any); list {
		return meant(v, false)
	}
	if huge.MatchString(text) {
		return v
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return v
	}
	number, ok := new(big.Rat).SetString(q.AsDec().String())
	if !ok {
		return v
	}
	return number.RatString()
}
