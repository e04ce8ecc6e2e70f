package main

import (
	"os"
	"path/filepath"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // The authentication methods of the released kubectl.
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// calledAsKubectl reports whether the program goes by the name of kubectl, as
// it does through a symbolic link.
func calledAsKubectl(program string) bool {
	return filepath.Base(program) == "kubectl"
}

// kubectl is kubectl, and ends the process with its exit status. It does what
// the main function of the released one does, in the same order: the verbosity
// counts already while the command is put together, for plugins and .kuberc.
func kubectl(args []string) int {
	os.Args = args
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(args)) // A wrong level is reported when the flags are parsed.
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
	return 0
}
