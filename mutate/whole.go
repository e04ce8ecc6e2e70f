package mutate

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate/kinds"
)

// unseen is what the version of a change does not show of its target.
type unseen struct {
	fields []string
	// by is the version that shows it.
	by string
	// doubtful is set where a conversion may have it under another name.
	doubtful bool
	// failed is set where that version cannot be read at all.
	failed bool
}

// admitWhole refuses a change of a target that the version of the change does not show
// whole: the API server drops the rest at the first write by it, and no before-image would
// have it. The kinds of Kubernetes convert without loss.
func (c Change) admitWhole(ctx context.Context, before *unstructured.Unstructured, op string) ([]string, error) {
	found, err := c.unseen(ctx, before)
	if err == nil && found.failed {
		return c.warn(fmt.Sprintf("it cannot be read by %s: if that shows fields which %s does not, a rollback cannot restore them", found.by, c.Ref.GVK.GroupVersion())), nil
	}
	if err != nil || len(found.fields) == 0 {
		return nil, err
	}
	fields, own := few(found.fields), c.Ref.GVK.GroupVersion().String()
	switch {
	case found.doubtful:
		return c.warn(fmt.Sprintf("%s shows %s, of which nothing is to be found in %s: if the conversion between them loses it, a rollback cannot restore it", found.by, fields, own)), nil
	case c.Options.AcceptLoss:
		return c.warn(fmt.Sprintf("%s does not show %s, which %s does: it is lost, and a rollback cannot restore it", own, fields, found.by)), nil
	}
	return nil, c.fail(errclass.Terminal, errclass.Irreversible, op, "it could not be rolled back: %s does not show %s, which %s does", own, fields, found.by).
		WithHint("write the change for the version " + found.by + ", or set acceptLoss: true on it")
}

// few names things in a message, not all where there are many.
func few(names []string) string {
	out := strings.Join(names[:min(len(names), 5)], ", ")
	if more := len(names) - 5; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}

// unseen looks for what other versions show of the target and that of the change does not.
func (c Change) unseen(ctx context.Context, seen *unstructured.Unstructured) (unseen, error) {
	if seen == nil || c.Environment.Versions == nil || !fieldmerge.Custom(c.Ref.GVK.GroupKind()) {
		return unseen{}, nil
	}
	others, served, err := c.versions(seen)
	if err != nil {
		return unseen{}, err
	}
	var most unseen
	for _, other := range others {
		found, err := c.hiddenFrom(ctx, seen, other)
		if err != nil {
			return unseen{}, err
		}
		if len(found.fields) > len(most.fields) || found.failed && len(most.fields) == 0 {
			most = found
		}
	}
	if len(most.fields) > 0 || most.failed {
		return most, nil
	}
	return c.unserved(ctx, seen, served), nil
}

// versions returns the other versions by which the target can be read, and the names of all
// that are served. One that another client has written the target by may be newer than what is
// known of the kind.
func (c Change) versions(seen *unstructured.Unstructured) (others []Served, served map[string]bool, err error) {
	for _, anew := range []bool{false, true} {
		if others, err = c.Environment.Versions(anew); err != nil {
			return nil, nil, c.wrap(err, "find the versions of")
		}
		served = map[string]bool{"": true, c.Ref.GVK.GroupVersion().String(): true}
		for _, other := range others {
			served[other.Ref.GVK.GroupVersion().String()] = true
		}
		if !slices.ContainsFunc(seen.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return !served[e.APIVersion] }) {
			break
		}
	}
	return others, served, nil
}

// unserved looks for fields that another client has written by a version which is not served,
// and which the target does not show: where nothing is converted, they have the same names
// in every version.
func (c Change) unserved(ctx context.Context, seen *unstructured.Unstructured, served map[string]bool) unseen {
	var out unseen
	for _, e := range seen.GetManagedFields() {
		if !served[e.APIVersion] {
			out.by = e.APIVersion
		}
	}
	if out.by == "" {
		return out
	}
	for _, f := range fieldmerge.Unshown(seen, func(version string) bool { return !served[version] }) {
		out.fields = append(out.fields, c.path(f.Path))
	}
	if len(out.fields) == 0 || c.conversion(ctx) != noConversion {
		return unseen{}
	}
	return out
}

// hiddenFrom compares what two versions show of the same state of the target.
func (c Change) hiddenFrom(ctx context.Context, seen *unstructured.Unstructured, other Served) (unseen, error) {
	for range attempts {
		whole, err := c.at(other.Ref).client().Get(ctx, c.Ref.Name, metav1.GetOptions{})
		switch {
		case errclass.Is(err, errclass.NotFound):
			return unseen{}, nil // It is gone, or the version has gone: what follows finds out.
		case cannotConvert(err):
			return unseen{by: other.Ref.GVK.GroupVersion().String(), failed: true}, nil
		case err != nil:
			return unseen{}, c.wrap(err, "read by "+other.Ref.GVK.Version)
		case whole.GetResourceVersion() == seen.GetResourceVersion():
			return c.hidden(ctx, seen, whole, other)
		}
		if seen, err = Read(ctx, c); err != nil || seen == nil {
			return unseen{}, err
		}
	}
	return unseen{}, c.fail(errclass.Retryable, errclass.StaleVersion, "read", "it changes faster than it can be read by two versions")
}

// cannotConvert reports an answer by which the API server says that it has the object and
// cannot show it by a version, as where the webhook that converts it is down.
func cannotConvert(err error) bool {
	status, ok := errclass.Status(err)
	return ok && status.Code == http.StatusInternalServerError
}

func (c Change) hidden(ctx context.Context, seen, whole *unstructured.Unstructured, other Served) (unseen, error) {
	by, view := fieldmerge.View{Object: seen}, fieldmerge.View{Object: whole}
	var err error
	if c.Environment.Type != nil && other.Type != nil {
		if by.Type, err = c.Environment.Type(ctx); err == nil {
			view.Type, err = other.Type(ctx)
		}
		if err != nil {
			return unseen{}, c.wrap(err, "find the schema of")
		}
	}
	found, converted := fieldmerge.Hidden(by, view)
	out := unseen{by: other.Ref.GVK.GroupVersion().String()}
	out.doubtful = converted && len(found) > 0 && c.conversion(ctx) != noConversion
	for _, f := range found {
		if !out.doubtful || !occurs(f.Now, seen.Object) {
			out.fields = append(out.fields, c.path(f.Path))
		}
	}
	return out, nil
}

// noConversion is the strategy of a kind whose versions differ in nothing but their schema.
const noConversion = "None"

// conversion tells how the versions of the target's kind are converted, empty if that may
// not be read.
func (c Change) conversion(ctx context.Context) string {
	crd, err := c.Environment.Cluster.Resource(kinds.Definitions).Get(ctx, c.Ref.GVR.GroupResource().String(), metav1.GetOptions{})
	if err != nil {
		return ""
	}
	strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
	return strategy
}

// occurs reports whether every value in v is to be found somewhere in another.
func occurs(v, in any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			if !occurs(inner, in) {
				return false
			}
		}
		return true
	case []any:
		for _, inner := range v {
			if !occurs(inner, in) {
				return false
			}
		}
		return true
	default:
		return contains(in, fmt.Sprint(v))
	}
}

func contains(in any, text string) bool {
	switch in := in.(type) {
	case map[string]any:
		for name, inner := range in {
			if name != "managedFields" && contains(inner, text) {
				return true
			}
		}
		return false
	case []any:
		for _, inner := range in {
			if contains(inner, text) {
				return true
			}
		}
		return false
	default:
		return strings.Contains(fmt.Sprint(in), text)
	}
}
