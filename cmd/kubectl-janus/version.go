package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/internal/version"
)

// versions are those of the plugin and of what it talks to.
type versions struct {
	Plugin     string `json:"plugin"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	Kubernetes string `json:"kubernetes,omitempty"`
	// Janusd are the images of the Deployments of janusd.
	Janusd []string `json:"janusd,omitempty"`
	// Unread says why something is missing.
	Unread []string `json:"unread,omitempty"`
}

func newVersion(s *session) *cobra.Command {
	var out output
	var client bool
	var system string
	cmd := &cobra.Command{
		Use: "version", Short: "Print the versions of the plugin, of janusd and of Kubernetes", Args: cobra.NoArgs,
		Example: `  kubectl janus version --client
  kubectl janus version -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versions{Plugin: version.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if !client {
				s.servers(cmd.Context(), system, &v)
			}
			if !out.text() {
				return s.printData(out, v)
			}
			s.print("kubectl janus %s (%s, %s)", v.Plugin, v.Go, v.Platform)
			for _, image := range v.Janusd {
				s.print("janusd        %s", image)
			}
			if v.Kubernetes != "" {
				s.print("Kubernetes    %s", v.Kubernetes)
			}
			for _, text := range v.Unread {
				s.say("%s", text)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&client, "client", false, "print that of the plugin alone, and ask no cluster")
	cmd.Flags().StringVar(&system, "system-namespace", systemNamespace, "the namespace of janusd")
	out.addTo(cmd)
	return cmd
}

// servers asks for the versions in the cluster. What cannot be read is told.
func (s *session) servers(ctx context.Context, system string, v *versions) {
	client, err := s.kube()
	if err != nil {
		v.Unread = append(v.Unread, err.Error())
		return
	}
	if server, err := client.Discovery().ServerVersion(); err != nil {
		v.Unread = append(v.Unread, fmt.Sprintf("the version of Kubernetes cannot be read: %v", err))
	} else {
		v.Kubernetes = server.GitVersion
	}
	list, err := client.AppsV1().Deployments(system).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=janusd"})
	switch {
	case err != nil:
		v.Unread = append(v.Unread, fmt.Sprintf("the version of janusd cannot be read: %v", err))
	case len(list.Items) == 0:
		v.Unread = append(v.Unread, fmt.Sprintf("namespace %s has no Deployment of janusd: it may run elsewhere (--system-namespace), or outside of the cluster", system))
	}
	if err == nil {
		for _, d := range list.Items {
			for _, c := range d.Spec.Template.Spec.Containers {
				v.Janusd = append(v.Janusd, c.Image)
			}
		}
	}
}
