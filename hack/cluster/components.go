package main

import (
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"                 // The client metrics of the released binaries.
	_ "k8s.io/component-base/metrics/prometheus/version"                  // The version metric of the released binaries.
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"                  //nolint:depguard // This module is the test cluster.
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app" //nolint:depguard // This module is the test cluster.
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"                  //nolint:depguard // This module is the test cluster.
)

// components maps a command to a function that is the component until it ends
// and returns the exit status. The arguments begin with the command's name, as
// those of a program begin with the program's.
var components = map[string]func(args []string) int{
	"etcd": func(args []string) int {
		etcdmain.Main(args)
		return 0
	},
	"kube-apiserver": func(args []string) int {
		return execute(apiserver.NewAPIServerCommand(), args)
	},
	"kube-controller-manager": func(args []string) int {
		return execute(controllermanager.NewControllerManagerCommand(), args)
	},
	"kube-scheduler": func(args []string) int {
		return execute(scheduler.NewSchedulerCommand(), args)
	},
	"kubectl": kubectl,
}

// execute runs a command of Kubernetes the way its own main function does. The
// command reads the arguments of the process, so they are replaced.
func execute(command *cobra.Command, args []string) int {
	os.Args = args
	return cli.Run(command)
}
