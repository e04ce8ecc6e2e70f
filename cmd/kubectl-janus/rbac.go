package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	api "janus.io/janus/api/v1alpha1"
)

func newRBAC(s *session) *cobra.Command {
	var w wishes
	var rerun bool
	var out output
	w.ready.given = func() bool { return false }
	cmd := &cobra.Command{
		Use:   "rbac {NAME | {-f FILE | -k DIRECTORY | --delete KIND/NAME} --service-account NAME}",
		Short: "Print the ServiceAccount and the rights that a run needs, for kubectl apply",
		Long: `Print a ServiceAccount with the rights to make the changes of a run, to roll them back, and to undo them once they have
committed, and no others: the ServiceAccount, a Role and a RoleBinding for each namespace, and a ClusterRole and a
ClusterRoleBinding for what has no namespace, or one that the run creates. Rules name their objects, except for create and
list, which cannot be limited to a name. Nothing is written: pipe it to kubectl apply.

The rights are those for the cluster as it is: an object that does not exist is created, another is patched. --rerun grants
both for each, for manifests that you run again and again.

A Role has the name of the ServiceAccount, and what you apply replaces what it granted before. Give all manifests that one
ServiceAccount is for in one call.

If the manifest is a Transaction, or the name of one is given, the rights are those of its changes. The rights to undo it are
the same.`,
		Example: `  kubectl janus rbac -f app.yaml --service-account deployer | kubectl apply -f -
  kubectl janus rbac deploy-v2 | kubectl apply -f -
  kubectl janus rbac -k overlays/production --delete configmap/old --service-account deployer --rerun > rbac.yaml`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: s.names,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := w.meant(cmd.Context(), s, args)
			if err != nil {
				return err
			}
			return s.printRights(cmd.Context(), t, rerun, out)
		},
	}
	f := cmd.Flags()
	w.sources.addTo(cmd)
	out.addTo(cmd)
	f.StringVar(&w.set, "set", "", "the name of the set that the manifests are")
	f.BoolVar(&w.prune, "prune", false, "also grant what it takes to delete what earlier runs with the same --set have made and the manifests no longer have")
	f.StringVarP(&w.account, accountFlag, "s", "", accountHelp)
	f.BoolVar(&rerun, "rerun", false, "grant for each manifest what it takes to create it and what it takes to patch it, whether it exists now or not")
	return cmd
}

// meant is the Transaction that a run of these would create, without what only matters to janusd.
func (w *wishes) meant(ctx context.Context, s *session, args []string) (*api.Transaction, error) {
	if len(args) == 1 {
		if w.given() {
			return nil, errors.New("both a Transaction and manifests are given: name one of them")
		}
		t, err := s.read(ctx, args[0])
		if err == nil && t.Spec.UndoOf != nil {
			t.Spec.Changes = changesOf(t)
		}
		return t, err
	}
	namespace, manifests, err := w.manifests(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, m := range manifests {
		if m.GroupVersionKind().GroupKind() != api.Kind.GroupKind() {
			continue
		}
		u, err := w.theirs(s, m.Unstructured, len(manifests), namespace)
		if err != nil {
			return nil, err
		}
		t, err := typed(u)
		switch {
		case err != nil:
			return nil, err
		case t.Spec.UndoOf != nil:
			return nil, fmt.Errorf("transaction %s/%s has undoOf and no changes of its own: name the one that it undoes, whose rights it needs", t.Namespace, t.Name)
		}
		return t, nil
	}
	return w.proposed(ctx, s, manifests, namespace)
}

// changesOf are the changes of an undo, which are in its status.
func changesOf(t *api.Transaction) []api.Change {
	var out []api.Change
	for _, item := range t.Status.Items {
		out = append(out, api.Change{Name: item.Name, Target: item.Target, Type: item.Type})
	}
	return out
}

// printRights prints the objects that give a ServiceAccount what a Transaction needs.
func (s *session) printRights(ctx context.Context, t *api.Transaction, rerun bool, out output) error {
	v, err := s.surveyor(t.Namespace)
	if err != nil {
		return err
	}
	needs, err := v.needs(ctx, t, rerun)
	if err != nil {
		return err
	}
	account := t.Spec.ServiceAccountName
	if account == "" {
		return errors.New("transaction " + t.Namespace + "/" + t.Name + " names no ServiceAccount: set spec.serviceAccountName")
	}
	var printer printers.ResourcePrinter = &printers.YAMLPrinter{}
	if p := out.printer(); p != nil {
		printer = p
	}
	for _, object := range needs.objects(t.Namespace, account) {
		if err := printer.PrintObj(object, s.Out); err != nil {
			return fmt.Errorf("print the rights of ServiceAccount %s/%s: %w", t.Namespace, account, err)
		}
	}
	for _, note := range needs.notes {
		s.say("%s", note)
	}
	return nil
}

// objects are the manifests that grant the rights to a ServiceAccount.
func (n *needs) objects(namespace, account string) []runtime.Object {
	out := []runtime.Object{&corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account},
	}}
	of := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}}
	for _, scope := range n.scopes() {
		rules := n.rules(scope)
		if scope == ofCluster {
			// Names of the cluster: two namespaces may have a ServiceAccount of one name.
			meta := metav1.ObjectMeta{Name: "janus:" + namespace + ":" + account}
			out = append(out, &rbacv1.ClusterRole{TypeMeta: of("ClusterRole"), ObjectMeta: meta, Rules: rules}, &rbacv1.ClusterRoleBinding{
				TypeMeta: of("ClusterRoleBinding"), ObjectMeta: meta, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			})
			continue
		}
		meta := metav1.ObjectMeta{Namespace: scope, Name: account}
		if scope != namespace {
			meta.Name = "janus:" + namespace + ":" + account
		}
		out = append(out, &rbacv1.Role{TypeMeta: of("Role"), ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{
			TypeMeta: of("RoleBinding"), ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		})
	}
	return out
}
