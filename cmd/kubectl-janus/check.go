package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	authzv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/version"
)

// systemNamespace is where janusd is installed by default.
const systemNamespace = "janus-system"

// oldest is the first minor version of Kubernetes 1 that serves the definition.
const oldest = 33

// checking is one call of check.
type checking struct {
	*session
	client kubernetes.Interface
	system string
	wrong  int
	out    output
	lines  []checked
}

// checked is one line of the result.
type checked struct {
	// Result is ok, FAIL, no for what some do without, or ? for what could not be looked at.
	Result string `json:"result"`
	Text   string `json:"text"`
}

// line prints one, or keeps it for the end.
func (c *checking) line(result, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if c.out.text() {
		c.print("%-4s  %s", result, text)
	}
	c.lines = append(c.lines, checked{result, text})
}

func newCheck(s *session) *cobra.Command {
	c := &checking{session: s}
	var account string
	cmd := &cobra.Command{
		Use: "check", Short: "Check the installation of Janus, and your own rights", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			namespace, err := s.namespace()
			if err != nil {
				return err
			}
			if c.client, err = s.kube(); err != nil {
				return err
			}
			if err := c.server(); err != nil {
				return err
			}
			c.served()
			c.running(cmd.Context())
			c.policies(cmd.Context())
			c.sensitive(cmd.Context())
			if account, err = s.defaultAccount(cmd.Context(), namespace, account); err != nil {
				return err
			}
			c.rights(cmd.Context(), namespace, account)
			if !c.out.text() {
				if err := s.printData(c.out, map[string]any{"checks": c.lines, "failed": c.wrong}); err != nil {
					return err
				}
			}
			if c.wrong > 0 {
				return fmt.Errorf("%d of the checks above failed", c.wrong)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&c.system, "system-namespace", systemNamespace, "the namespace of janusd")
	c.out.addTo(cmd)
	cmd.Flags().StringVarP(&account, accountFlag, "s", "", "check too whether you may have Transactions act as this ServiceAccount; by default $JANUS_SERVICE_ACCOUNT, or what the annotation "+accountAnnotation+" of the namespace names")
	return cmd
}

// is prints one line of the result.
func (c *checking) is(well bool, format string, args ...any) {
	sign := "ok"
	if !well {
		sign, c.wrong = "FAIL", c.wrong+1
	}
	c.line(sign, format, args...)
}

// cannot prints that something could not be looked at, which is no fault of it.
func (c *checking) cannot(format string, args ...any) {
	c.line("?", format, args...)
}

func (c *checking) server() error {
	v, err := c.client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask the API server for its version: %w", err)
	}
	minor, err := strconv.Atoi(strings.TrimRight(v.Minor, "+"))
	if err != nil {
		c.cannot("whether Kubernetes is new enough: it says that it is %q, and 1.%d or newer is needed", v.String(), oldest)
		return nil
	}
	c.is(v.Major != "1" || minor >= oldest, "Kubernetes %s.%s (1.%d or newer is needed)", v.Major, v.Minor, oldest)
	return nil
}

func (c *checking) served() {
	for _, version := range api.Versions {
		_, err := c.client.Discovery().ServerResourcesForGroupVersion(version.String())
		switch {
		case apierrors.IsNotFound(err):
			c.is(false, "the cluster does not serve %s: install the CustomResourceDefinition in deploy/crd", version)
		case err != nil:
			c.cannot("whether the cluster serves %s: %v", version, err)
		default:
			c.is(true, "the cluster serves %s", version)
		}
	}
}

// running looks for the Deployment of janusd.
func (c *checking) running(ctx context.Context) {
	list, err := c.client.AppsV1().Deployments(c.system).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=janusd"})
	switch {
	case err != nil:
		c.cannot("whether janusd runs: %v", err)
		return
	case len(list.Items) == 0:
		c.cannot("whether janusd runs: namespace %s has no Deployment of it. It may run elsewhere (--system-namespace), or outside of the cluster", c.system)
		return
	}
	for _, d := range list.Items {
		want := int32(1)
		if d.Spec.Replicas != nil {
			want = *d.Spec.Replicas
		}
		image := ""
		if len(d.Spec.Template.Spec.Containers) > 0 {
			image = d.Spec.Template.Spec.Containers[0].Image
		}
		c.is(want > 0 && d.Status.AvailableReplicas == want, "Deployment %s/%s: %d of %d replicas available, image %s (this plugin is %s)",
			d.Namespace, d.Name, d.Status.AvailableReplicas, want, image, version.Version)
	}
}

// policies looks for those that say who may do what with a Transaction.
func (c *checking) policies(ctx context.Context) {
	c.bound(ctx, "transaction-identity.backup.janus.io", "who may name which ServiceAccount", func(binding string) {
		c.is(false, "there is no ValidatingAdmissionPolicyBinding %s: a user who may create Transactions may act as any ServiceAccount of the namespace; install deploy/policies", binding)
	})
	c.bound(ctx, "transaction-approvals.backup.janus.io", "who may approve a plan", func(binding string) {
		c.line("no", "there is no ValidatingAdmissionPolicyBinding %s: Transactions with spec.approval are refused; install deploy/policies", binding)
	})
}

// bound looks for the binding of a policy.
func (c *checking) bound(ctx context.Context, binding, restrains string, missing func(binding string)) {
	_, err := c.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Get(ctx, binding, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		missing(binding)
	case err != nil:
		c.cannot("whether a policy restrains %s: %v", restrains, err)
	default:
		c.is(true, "%s is restrained by %s", restrains, binding)
	}
}

// sensitive checks whether janusd says which kinds are.
func (c *checking) sensitive(ctx context.Context) {
	told, err := c.settings(ctx, c.system)
	if err != nil {
		c.cannot("which kinds are sensitive: %v. run and plan take all content for confidential", err)
		return
	}
	kinds := []string{"Secret"}
	for _, kind := range told.SensitiveKinds {
		kinds = append(kinds, kind.String())
	}
	c.is(true, "content of these kinds is confidential: %s", strings.Join(kinds, ", "))
}

// storage checks whether the user may store contents beside a Transaction. Many need none of it.
func (c *checking) storage(ctx context.Context, namespace string) {
	for _, kind := range []struct{ name, resource, without string }{
		{"Secrets", "secrets", "run and plan cannot bring confidential content into effect, such as that of Secrets"},
		{"ConfigMaps", "configmaps", "run and plan cannot bring more into effect than one Transaction holds"},
	} {
		allowed, err := c.may(ctx, authzv1.ResourceAttributes{Namespace: namespace, Verb: "create", Resource: kind.resource})
		switch {
		case err != nil:
			c.cannot("whether you may create %s in namespace %s: %v", kind.name, namespace, err)
		case allowed:
			c.is(true, "you may create %s in namespace %s", kind.name, namespace)
		default:
			c.line("no", "you may not create %s in namespace %s: %s", kind.name, namespace, kind.without)
		}
	}
}

// rights looks what the user may do in the namespace.
func (c *checking) rights(ctx context.Context, namespace, account string) {
	for _, verb := range []string{"get", "list", "watch", "create", "patch"} {
		allowed, err := c.may(ctx, authzv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: api.GroupVersion.Group, Resource: "transactions"})
		if err != nil {
			c.cannot("whether you may %s Transactions in namespace %s: %v", verb, namespace, err)
			return
		}
		if !allowed {
			c.is(false, "you may not %s Transactions in namespace %s: the ClusterRole %s grants it", verb, namespace, grantedBy(verb))
			continue
		}
		c.is(true, "you may %s Transactions in namespace %s", verb, namespace)
	}
	c.storage(ctx, namespace)
	if account == "" {
		return
	}
	c.exists(ctx, namespace, account)
	as := func(verb, group string) (bool, error) {
		return c.may(ctx, authzv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: "serviceaccounts", Name: account})
	}
	impersonate, err1 := as("impersonate", "")
	use, err2 := as("use", api.UseGroup)
	former, err3 := as("use", api.GroupVersion.Group)
	if err := errors.Join(err1, err2, err3); err != nil {
		c.cannot("whether you may have Transactions act as ServiceAccount %s/%s: %v", namespace, account, err)
		return
	}
	if !impersonate && !use {
		c.is(false, "you may not have Transactions act as ServiceAccount %s/%s: that takes impersonate on serviceaccounts, or use on serviceaccounts.%s",
			namespace, account, api.UseGroup)
		if former {
			c.line("", "use on serviceaccounts.%s counts no more: ask for a rule with apiGroups [%s]", api.GroupVersion.Group, api.UseGroup)
		}
		return
	}
	c.is(true, "you may have Transactions act as ServiceAccount %s/%s", namespace, account)
}

// grantedBy is the ClusterRole of an installation that has a verb on Transactions.
func grantedBy(verb string) string {
	if slices.Contains([]string{"get", "list", "watch"}, verb) {
		return "janus-viewer"
	}
	return "janus-editor"
}

// exists checks whether there is a ServiceAccount.
func (c *checking) exists(ctx context.Context, namespace, account string) {
	_, err := c.client.CoreV1().ServiceAccounts(namespace).Get(ctx, account, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		c.is(false, "ServiceAccount %s/%s does not exist: create it, with the rights that its Transactions need", namespace, account)
	case err != nil:
		c.cannot("whether ServiceAccount %s/%s exists: %v", namespace, account, err)
	default:
		c.is(true, "ServiceAccount %s/%s exists", namespace, account)
	}
}

func (c *checking) may(ctx context.Context, what authzv1.ResourceAttributes) (bool, error) {
	review := &authzv1.SelfSubjectAccessReview{Spec: authzv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	answer, err := c.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}
