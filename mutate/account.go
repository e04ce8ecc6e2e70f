package mutate

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate/kinds"
)

// isAccount reports whether the target is the ServiceAccount that the Transaction acts as.
func (c Change) isAccount() bool {
	return c.Ref.GVK.GroupKind() == kinds.ServiceAccount && c.Ref.Namespace == c.Environment.Account.Namespace && c.Ref.Name == c.Environment.Account.Name
}

// admitOwnEnd refuses to delete the ServiceAccount that the Transaction acts as, unless
// nothing comes after that or it accepts the loss: nobody could roll anything back.
func (c Change) admitOwnEnd() ([]string, error) {
	const why = "the Transaction acts as it, and neither this change nor another could be rolled back without it"
	if c.Options.AcceptLoss || known(c.Options.Last) {
		return c.warn("a rollback cannot undo its deletion: " + why), nil
	}
	return nil, c.fail(errclass.Terminal, errclass.Irreversible, "delete", "%s", why).
		WithHint("make it the last change, delete it outside of the Transaction, or set acceptLoss: true on the change")
}

// binds reports whether an object is a binding of the ServiceAccount that the Transaction
// acts as.
func (c Change) binds(obj *unstructured.Unstructured) bool {
	if c.Ref.GVK.Group != kinds.RBACGroup || obj == nil {
		return false
	}
	subjects, _ := obj.Object["subjects"].([]any)
	return slices.ContainsFunc(subjects, func(s any) bool { return Includes(s, c.Ref.Namespace, c.Environment.Account) })
}

// Includes reports whether a subject of a binding is a ServiceAccount, or a group that it
// is in.
func Includes(subject any, namespace string, account types.NamespacedName) bool {
	fields, _ := subject.(map[string]any)
	name, _ := fields["name"].(string)
	in, _ := fields["namespace"].(string)
	if in == "" {
		in = namespace
	}
	switch fields["kind"] {
	case "ServiceAccount":
		return name == account.Name && in == account.Namespace
	case "User":
		return name == "system:serviceaccount:"+account.Namespace+":"+account.Name
	case "Group":
		return slices.Contains([]string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated"}, name)
	}
	return false
}

// rehearseRules finds out, without effect, whether the ServiceAccount may give a role back
// the rules that a change takes from it: nobody may grant more than they have, and to grant
// less is not guarded so. A rule twice over is a change to the API server, which grants
// nothing else.
func (c Change) rehearseRules(ctx context.Context, before, after *unstructured.Unstructured) (string, error) {
	if c.Ref.GVK.Group != kinds.RBACGroup || before.Object["aggregationRule"] != nil || len(kinds.Beyond(before.Object, after.Object, []string{"rules"})) == 0 {
		return "", nil
	}
	rules, _ := before.Object["rules"].([]any)
	patch := &unstructured.Unstructured{Object: map[string]any{"rules": append(slices.Clone(rules), rules[0])}}
	body, err := patch.MarshalJSON()
	if err != nil {
		return "", c.wrap(err, "encode the rules of")
	}
	_, err = c.client().Patch(ctx, c.Ref.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: c.Names.Manager, DryRun: dryRun(true)})
	switch {
	case errclass.RefuserOf(err) == errclass.ByEscalation:
		return "the ServiceAccount may not grant again the rules that it removes: it needs every right that is in them, or escalate on the role", nil
	case err != nil && (errclass.ClassOf(err) == errclass.Retryable || errclass.ClassOf(err) == errclass.Unknown):
		return "", c.wrap(err, "rehearse the rollback of")
	}
	return "", nil // Any other refusal is found out by who asks for the rights.
}
