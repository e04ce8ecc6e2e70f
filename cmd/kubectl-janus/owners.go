package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
)

func newOwners(s *session) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "owners KIND/NAME [FIELD...]", Short: "Show which field manager owns which fields of an object", Args: cobra.MinimumNArgs(1),
		Long: `Show which field manager owns which fields of an object, as its managedFields say: the name of the manager, how it writes
(Apply is a server-side apply, Update anything else), the subresource, and when it last wrote. A server-side apply of
another manager that has another value for one of the fields is refused with a conflict, unless it is forced. release gives
fields to the manager that applies the object.

With FIELD, show only who owns that field, what is inside it, or what it is inside of. What nobody owns is not shown.`,
		Example: `  kubectl janus owners deployment/web
  kubectl janus owners deployment/web .spec.replicas
  kubectl janus owners deployment/web -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.owners(cmd.Context(), args[0], args[1:], out)
		},
	}
	cmd.AddCommand(newRelease(s))
	out.addTo(cmd)
	return cmd
}

// owned is what a manager owns, for programs.
type owned struct {
	Manager     string       `json:"manager"`
	Operation   string       `json:"operation"`
	Subresource string       `json:"subresource,omitempty"`
	APIVersion  string       `json:"apiVersion"`
	Time        *metav1.Time `json:"time,omitempty"`
	Fields      []string     `json:"fields"`
}

// owners shows who owns which of some fields of an object; of all of them if none is given.
func (s *session) owners(ctx context.Context, name string, fields []string, out output) error {
	namespace, err := s.namespace()
	if err != nil {
		return err
	}
	v, err := s.surveyor(namespace)
	if err != nil {
		return err
	}
	_, resource, t, err := v.named(name)
	if err != nil {
		return err
	}
	obj, err := v.client.Resource(resource).Namespace(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
	if err != nil {
		return unseen(t, resource, err)
	}
	all, err := fieldmerge.Ownerships(obj)
	if err != nil {
		return fmt.Errorf("%s: %w", t.String(), err)
	}
	list, with := []owned{}, map[string][]string{}
	for _, o := range all {
		one := owned{o.Manager, string(o.Operation), o.Subresource, o.APIVersion, o.Time, asked(o.Fields, fields)}
		if len(one.Fields) == 0 && len(fields) > 0 {
			continue
		}
		list = append(list, one)
		for _, field := range one.Fields {
			with[field] = append(with[field], o.Manager)
		}
	}
	if !out.text() {
		return s.printData(out, map[string]any{"target": t, "owners": list})
	}
	if len(list) == 0 {
		s.say("No field manager owns any such field of %s.", t.String())
	}
	for n, one := range list {
		s.printOwned(n, one, with)
	}
	return nil
}

// unseen says why an object cannot be read.
func unseen(t api.Target, resource schema.GroupVersionResource, err error) error {
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w; ask for the verb get on %s", err, resource.GroupResource())
	}
	return fmt.Errorf("read %s: %w", t.String(), err)
}

// printOwned prints what a manager owns, and which of it others own too.
func (s *session) printOwned(n int, one owned, with map[string][]string) {
	if n > 0 {
		s.print("")
	}
	how := one.Operation
	if one.Subresource != "" {
		how += " of " + one.Subresource
	}
	if one.Time != nil {
		how += ", " + duration.HumanDuration(time.Since(one.Time.Time)) + " ago"
	}
	s.print("%s (%s)", one.Manager, how)
	for _, field := range one.Fields {
		others := slices.DeleteFunc(slices.Clone(with[field]), func(manager string) bool { return manager == one.Manager })
		also := ""
		if len(others) > 0 {
			also = "   (also " + strings.Join(others, ", ") + ")"
		}
		s.print("  %s%s", field, also)
	}
}

// asked are the fields that are asked for: themselves, what is inside, and what they are inside
// of.
func asked(fields, wanted []string) []string {
	if len(wanted) == 0 {
		return fields
	}
	return slices.DeleteFunc(slices.Clone(fields), func(field string) bool {
		return !slices.ContainsFunc(wanted, func(want string) bool {
			if !strings.HasPrefix(want, ".") {
				want = "." + want
			}
			return inside(field, want) || inside(want, field)
		})
	})
}

// inside reports whether a path is another one or below it.
func inside(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
