package main

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"janus.io/janus/internal/version"
)

const about = `Make, watch and end Transactions: changes to Kubernetes objects that land together or not at all.

A Transaction is named by its name, or @latest for the one that was created last in the namespace.

Exit codes of what waits for a Transaction: 0 it is Committed (or Planned), 4 it is RolledBack, 5 it has Failed,
124 it had not ended in time, 1 anything else.`

// newRoot makes the command tree.
func newRoot(streams genericiooptions.IOStreams) *cobra.Command {
	s := newSession(streams)
	root := &cobra.Command{
		Use:           "kubectl-janus",
		Short:         "Change Kubernetes objects together or not at all",
		Long:          about,
		Version:       version.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl janus"},
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(plainFlagError)
	root.SetVersionTemplate("kubectl janus {{.Version}}\n")
	s.addConnection(root.PersistentFlags())
	registerNamespaces(root, s)

	const making, looking, acting, mending = "making", "looking", "acting", "mending"
	root.AddGroup(
		&cobra.Group{ID: making, Title: "Make:"},
		&cobra.Group{ID: looking, Title: "Look:"},
		&cobra.Group{ID: acting, Title: "Act:"},
		&cobra.Group{ID: mending, Title: "Set up and repair:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(making, newRun(s), newPlan(s), newLint(s), newPackage(s))
	add(looking, newGet(s), newDescribe(s), newTree(s), newWait(s), newHistory(s), newBlame(s), newOwners(s), newUI(s))
	add(acting, newApprove(s), newCancel(s), newSuspend(s), newResume(s), newRetry(s), newUndo(s), newDelete(s))
	add(mending, newRBAC(s), newLocks(s), newRecover(s), newCheck(s), newVersion(s))
	root.SetHelpCommandGroupID(mending)
	root.SetCompletionCommandGroupID(mending)
	s.finish(root)
	return root
}

// registerNamespaces completes --namespace.
func registerNamespaces(root *cobra.Command, s *session) {
	_ = root.RegisterFlagCompletionFunc("namespace", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.namespaceNames(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	})
}
