package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// latest stands for the Transaction that was created last.
const latest = "@latest"

// session has the cluster, the namespace and the user of one command.
type session struct {
	genericiooptions.IOStreams
	flags *genericclioptions.ConfigFlags
	// screen is what is drawn on standard error while a Transaction is followed; nil off a terminal.
	screen *live
	// told are the sentences about items that the progress has printed, off a terminal.
	told map[string]bool
}

func newSession(streams genericiooptions.IOStreams) *session {
	flags := genericclioptions.NewConfigFlags(true).WithDiscoveryQPS(50).WithDiscoveryBurst(300).WithWrapConfigFn(unlimited)
	return &session{IOStreams: streams, flags: flags}
}

// unlimited takes away the limit of client-go, which is meant for programs that run for
// ever: at 5 requests a second a command would wait longer than it works. The API server
// guards itself, and a command asks for one thing at a time.
func unlimited(c *rest.Config) *rest.Config {
	c.QPS = -1
	return c
}

// say prints what happens on the way, above what is drawn.
func (s *session) say(format string, args ...any) {
	if s.screen != nil {
		s.screen.aside(func() { write(s.ErrOut, format+"\n", args...) })
		return
	}
	write(s.ErrOut, format+"\n", args...)
}

// print prints a result.
func (s *session) print(format string, args ...any) {
	write(s.Out, format+"\n", args...)
}

// namespace is that of --namespace, else that of the kubeconfig's context.
func (s *session) namespace() (string, error) {
	namespace, _, err := s.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	return namespace, nil
}

func (s *session) dynamic() (dynamic.Interface, error) {
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return client, nil
}

func (s *session) kube() (kubernetes.Interface, error) {
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return client, nil
}

// transactions returns the interface to the Transactions of a namespace; of all, if it is
// empty.
func (s *session) transactions(namespace string) (dynamic.ResourceInterface, error) {
	client, err := s.dynamic()
	if err != nil {
		return nil, err
	}
	return client.Resource(api.Resource).Namespace(namespace), nil
}

// list reads Transactions, the oldest first.
func (s *session) list(ctx context.Context, namespace string, o metav1.ListOptions) ([]*api.Transaction, string, error) {
	client, err := s.transactions(namespace)
	if err != nil {
		return nil, "", err
	}
	list, err := client.List(ctx, o)
	if err != nil {
		return nil, "", explain("list Transactions", err)
	}
	var out []*api.Transaction
	for i := range list.Items {
		t, err := typed(&list.Items[i])
		if err != nil {
			return nil, "", err
		}
		out = append(out, t)
	}
	slices.SortStableFunc(out, func(a, b *api.Transaction) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), byVersion(a, b), cmp.Compare(a.Name, b.Name))
	})
	return out, list.GetResourceVersion(), nil
}

// byVersion orders Transactions of the same second, as which times are kept: the one that
// was written last is most likely the one that was created last.
func byVersion(a, b *api.Transaction) int {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	if err != nil {
		return 0
	}
	return order
}

// read reads a Transaction of the current namespace; @latest is the one that was created
// last.
func (s *session) read(ctx context.Context, name string) (*api.Transaction, error) {
	namespace, err := s.namespace()
	if err != nil {
		return nil, err
	}
	if name == latest {
		all, _, err := s.list(ctx, namespace, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("there is no Transaction in namespace %s", namespace)
		}
		return all[len(all)-1], nil
	}
	client, err := s.transactions(namespace)
	if err != nil {
		return nil, err
	}
	u, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, explain(fmt.Sprintf("read Transaction %s/%s", namespace, name), err)
	}
	return typed(u)
}

func typed(u *unstructured.Unstructured) (*api.Transaction, error) {
	t := &api.Transaction{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, t); err != nil {
		return nil, fmt.Errorf("read Transaction %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	return t, nil
}

// untyped is a Transaction as it is sent: without a status, and without what is zero.
func untyped(t *api.Transaction) (*unstructured.Unstructured, error) {
	u, err := whole(t)
	if err != nil {
		return nil, err
	}
	delete(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u, nil
}

// whole is a Transaction as it was read.
func whole(t *api.Transaction) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t)
	if err != nil {
		return nil, fmt.Errorf("encode Transaction %s: %w", t.Name, err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(api.Kind)
	return u, nil
}

// explain says what to do about an answer of the API server.
func explain(doing string, err error) error {
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err) && apierrors.ReasonForError(err) == metav1.StatusReasonNotFound && unserved(err):
		return fmt.Errorf("%s: the cluster does not serve Transactions; install Janus, and see: kubectl janus check (%w)", doing, err)
	case apierrors.IsForbidden(err) && errclass.PolicyOf(err) != "":
		return fmt.Errorf("%s: %w", doing, err) // A role would not help: the policy says what does.
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w; the ClusterRoles janus-viewer and janus-editor grant what is needed", doing, err)
	case apierrors.IsInvalid(err):
		return fmt.Errorf("%s: %w", doing, withoutUnchecked(err))
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

// withoutUnchecked leaves out of what is invalid that other rules were not checked for it.
func withoutUnchecked(err error) error {
	status, ok := errclass.Status(err)
	if !ok || status.Details == nil {
		return err
	}
	var texts []string
	for _, cause := range status.Details.Causes {
		if cause.Field == "<nil>" {
			continue
		}
		texts = append(texts, cause.Field+": "+cause.Message)
	}
	if len(texts) == 0 || len(texts) == len(status.Details.Causes) {
		return err
	}
	return &plainError{text: strings.Join(texts, "; "), err: err}
}

// plainError is an error in other words.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }

func (e *plainError) Unwrap() error { return e.err }

// unserved reports whether it is the resource that was not found, and not an object.
func unserved(err error) bool {
	status, ok := errclass.Status(err)
	return ok && (status.Details == nil || status.Details.Name == "")
}

// names completes names of Transactions.
func (s *session) names(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	namespace, err := s.namespace()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, _, err := s.list(cmd.Context(), namespace, metav1.ListOptions{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	out := []string{latest}
	for _, t := range all {
		out = append(out, t.Name+"\t"+string(phaseOf(t)))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (s *session) namespaceNames(ctx context.Context) []string {
	client, err := s.kube()
	if err != nil {
		return nil
	}
	list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var out []string
	for _, n := range list.Items {
		out = append(out, n.Name)
	}
	return out
}

// phaseOf is the phase; that of a Transaction which no janusd has seen yet is Pending.
func phaseOf(t *api.Transaction) api.Phase { return cmp.Or(t.Status.Phase, api.PhasePending) }

// interactive reports whether a person is at a terminal to be asked.
func (s *session) interactive() bool {
	file, ok := s.In.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
