package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// accountFlag is the flag that names a ServiceAccount.
	accountFlag = "service-account"
	// accountVariable is the environment variable that names a ServiceAccount where no flag does.
	accountVariable = "JANUS_SERVICE_ACCOUNT"
	// accountAnnotation of a Namespace names it where neither does.
	accountAnnotation = "janus.io/service-account"

	accountHelp = "the ServiceAccount of the namespace as which the changes are made; by default $JANUS_SERVICE_ACCOUNT, or what the annotation " +
		accountAnnotation + " of the namespace names"
)

// account is the ServiceAccount that a Transaction of a namespace uses: what the flag names, else
// the environment, else the Namespace. Who may not read Namespaces names it in one of the first two.
func (s *session) account(ctx context.Context, namespace, flag string) (string, error) {
	name, err := s.defaultAccount(ctx, namespace, flag)
	if err != nil || name != "" {
		return name, err
	}
	return "", errors.New("no ServiceAccount is named: set --service-account, or $" + accountVariable + ", or annotate the namespace: kubectl annotate namespace " +
		namespace + " " + accountAnnotation + "=NAME")
}

// defaultAccount is account, and empty if none is named.
func (s *session) defaultAccount(ctx context.Context, namespace, flag string) (string, error) {
	for _, name := range []string{flag, os.Getenv(accountVariable)} {
		if name != "" {
			return name, nil
		}
	}
	client, err := s.kube()
	if err != nil {
		return "", err
	}
	switch found, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{}); {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read Namespace %s, to see whether its annotation %s names the ServiceAccount: %w; or set --service-account", namespace, accountAnnotation, err)
	default:
		return found.Annotations[accountAnnotation], nil
	}
}

// accounts completes the name of a ServiceAccount.
func (s *session) accounts(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	namespace, err := s.namespace()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	client, err := s.kube()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := client.CoreV1().ServiceAccounts(namespace).List(cmd.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, account := range list.Items {
		out = append(out, account.Name)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
