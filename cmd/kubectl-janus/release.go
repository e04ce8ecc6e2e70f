package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/mutate"
)

// releaseWishes are the flags of owners release.
type releaseWishes struct {
	from, fields  []string
	to            string
	toGiven       bool
	name, account string
	showOnly, yes bool
	wait          waits
}

const releaseHelp = `Release fields of an object from field managers, as a Transaction: once it has committed, the managers that --from names
own them no more, and the manager that --to names does. No value changes. After kubectl patch, edit or scale of what Helm,
Flux or kubectl apply --server-side keeps, the next release of that tool meets a conflict; after this it does not.

Without --to the fields go to the manager that applies the object, if there is one alone; with --to="" to nobody. A field
that another manager owns too stays with that. Without --field everything that the managers own is released, but for the
status.

At a terminal, the plan is shown first, and you are asked whether to go on; --yes leaves out both. --dry-run shows the plan
alone. Until the commit, a rollback leaves all owners as they were; after it, kubectl janus undo gives the fields back.`

func newRelease(s *session) *cobra.Command {
	var w releaseWishes
	cmd := &cobra.Command{
		Use: "release KIND/NAME --from MANAGER [--to MANAGER] [--field FIELD] --service-account NAME", Short: "Release fields from a field manager to the tool that keeps the object", Args: cobra.ExactArgs(1),
		Long: releaseHelp,
		Example: `  kubectl janus owners release deployment/web --from kubectl-patch --service-account deployer --wait
  kubectl janus owners release deployment/web --from kubectl --to helm --field .spec.replicas --service-account deployer`,
		RunE: func(cmd *cobra.Command, args []string) error {
			w.toGiven = cmd.Flags().Changed("to")
			d, err := w.draft(cmd.Context(), s, args[0])
			switch {
			case err != nil && w.showOnly:
				return trouble(err)
			case err != nil:
				return err
			case w.showOnly:
				return trouble(s.planOfDraft(cmd.Context(), d, cmp.Or(time.Duration(w.wait.limit), planTimeout), w.wait.out))
			}
			if s.interactive() && !w.yes {
				if _, err := s.wanted(cmd.Context(), d, asking{
					out: planOut(s, &w.wait), limit: time.Duration(w.wait.limit), question: "Release these fields?", otherwise: "nothing is released",
				}); err != nil {
					return err
				}
			}
			return w.wait.carryOut(cmd.Context(), s, d)
		},
	}
	cmd.Flags().StringSliceVar(&w.from, "from", nil, "the field managers that give fields up, as kubectl janus owners names them")
	cmd.Flags().StringVar(&w.to, "to", "", "the manager that is to own them; by default the one that applies the object, and empty for nobody")
	cmd.Flags().StringArrayVar(&w.fields, "field", nil, "release this field alone, and what is inside; can be given several times")
	cmd.Flags().StringVar(&w.name, "name", "", "the name of the Transaction; the default is made up")
	cmd.Flags().StringVarP(&w.account, accountFlag, "s", "", accountHelp)
	cmd.Flags().BoolVar(&w.showOnly, "dry-run", false, "show the plan, and release nothing; the exit codes are those of plan")
	cmd.Flags().BoolVarP(&w.yes, "yes", "y", false, "show no plan, and do not ask")
	w.wait.addAll(cmd)
	_ = cmd.MarkFlagRequired("from")
	return cmd
}

// draft is that of the Transaction that releases fields of an object.
func (w *releaseWishes) draft(ctx context.Context, s *session, name string) (draft, error) {
	namespace, err := s.namespace()
	if err != nil {
		return draft{}, err
	}
	v, err := s.surveyor(namespace)
	if err != nil {
		return draft{}, err
	}
	_, resource, target, err := v.named(name)
	if err != nil {
		return draft{}, err
	}
	live, err := v.client.Resource(resource).Namespace(target.Namespace).Get(ctx, target.Name, metav1.GetOptions{})
	if err != nil {
		return draft{}, unseen(target, resource, err)
	}
	owners, err := fieldmerge.Ownerships(live)
	if err != nil {
		return draft{}, fmt.Errorf("%s: %w", target.String(), err)
	}
	if target.APIVersion, err = w.version(s, target, owners); err != nil {
		return draft{}, err
	}
	to, err := w.receiver(target, owners)
	if err != nil {
		return draft{}, err
	}
	account, err := s.account(ctx, namespace, w.account)
	if err != nil {
		return draft{}, err
	}
	t := &api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.name}}
	if w.name == "" {
		t.GenerateName = short("release-"+target.Name) + "-"
	}
	release := &api.Release{Managers: w.from}
	for _, field := range w.fields {
		release.Fields = append(release.Fields, "."+strings.TrimPrefix(field, "."))
	}
	t.Spec.ServiceAccountName, t.Spec.FieldManager = account, to
	t.Spec.Changes = []api.Change{{Target: target, Type: api.Patch, Release: release}}
	u, err := untyped(t)
	return draft{Unstructured: u}, err
}

// version is that by which the managers have written the object: by another one their fields
// cannot be told.
func (w *releaseWishes) version(s *session, target api.Target, owners []fieldmerge.Ownership) (string, error) {
	var versions, all []string
	for _, o := range owners {
		if o.Subresource == "status" {
			continue
		}
		if !slices.Contains(all, o.Manager) {
			all = append(all, o.Manager)
		}
		if slices.Contains(w.from, o.Manager) && !slices.Contains(versions, o.APIVersion) {
			versions = append(versions, o.APIVersion)
		}
	}
	for _, manager := range w.from {
		switch {
		case len(all) == 0:
			return "", fmt.Errorf("%s: no manager owns any of its fields, so there is nothing to release", target.String())
		case !slices.Contains(all, manager):
			return "", fmt.Errorf("%s: %s owns none of its fields; these managers do: %s", target.String(), manager, strings.Join(all, ", "))
		}
	}
	if slices.Contains(versions, target.APIVersion) || len(versions) == 0 {
		versions = append([]string{target.APIVersion}, slices.DeleteFunc(versions, func(v string) bool { return v == target.APIVersion })...)
	}
	for _, other := range versions[1:] {
		s.say("%s: what was written by %s is not released: name that version in KIND", target.String(), other)
	}
	return versions[0], nil
}

// receiver is the manager to which the fields go: the one that applies the object, if none is named.
func (w *releaseWishes) receiver(target api.Target, owners []fieldmerge.Ownership) (string, error) {
	if w.toGiven {
		return w.to, nil
	}
	var appliers []string
	for _, o := range owners {
		if o.Operation == metav1.ManagedFieldsOperationApply && !mutate.IsJanus(o.Manager) && !slices.Contains(w.from, o.Manager) {
			appliers = append(appliers, o.Manager)
		}
	}
	switch len(appliers) {
	case 0:
		return "", fmt.Errorf("%s: no other manager has applied it server-side: name the one that is to own the fields by --to, or give --to=\"\" for nobody", target.String())
	case 1:
		return appliers[0], nil
	default:
		return "", fmt.Errorf("%s: several managers have applied it: name one of %s by --to", target.String(), strings.Join(appliers, ", "))
	}
}
