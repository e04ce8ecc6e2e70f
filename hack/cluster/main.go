package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // The client-go metrics of the real binaries.
	_ "k8s.io/component-base/metrics/prometheus/version"  // The version metric of the real binaries.
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	if len(os.Args) < 2 {
		os.Exit(2)
	}
	var c *cobra.Command
	switch os.Args[1] {
	case "etcd":
		etcdmain.Main(os.Args[1:])
		return
	case "kube-apiserver":
		c = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		c = controllermanager.NewControllerManagerCommand()
	case "kube-scheduler":
		c = scheduler.NewSchedulerCommand()
	default:
		fmt.Println("unknown")
		os.Exit(2)
	}
	os.Args = os.Args[1:]
	os.Exit(cli.Run(c))
}
