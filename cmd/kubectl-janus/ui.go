package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"janus.io/janus/internal/ui"
	"janus.io/janus/internal/wiring/look"
	"janus.io/janus/revision"
)

// showing is one call of ui.
type showing struct {
	*session
	address    string
	everywhere bool
}

func newUI(s *session) *cobra.Command {
	v := &showing{session: s}
	cmd := &cobra.Command{
		Use:   "ui [NAME]",
		Short: "Show Transactions on a page for the browser, as they run",
		Long: `Serves a page that lists Transactions and shows one with its items, locks and events as they change, until Ctrl-C. With a
name, the address that is printed is that of this Transaction on the page.

It reads with your own rights and writes nothing. It is served to this machine alone, below a secret that is new each
time: anyone who has the address that is printed sees what you may see.`,
		Example: `  kubectl janus ui
  kubectl janus ui release-2
  kubectl janus ui -A --address 127.0.0.1:8080`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: s.names,
		RunE: func(cmd *cobra.Command, args []string) error {
			fragment := ""
			if len(args) > 0 {
				t, err := s.read(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				fragment = "#" + t.Namespace + "/" + t.Name
			}
			return v.run(cmd.Context(), fragment)
		},
	}
	cmd.Flags().StringVar(&v.address, "address", "127.0.0.1:0", "where to listen, on the loopback interface; with port 0 on one that is free")
	cmd.Flags().BoolVarP(&v.everywhere, "all-namespaces", "A", false, "of all namespaces")
	return cmd
}

func (v *showing) run(ctx context.Context, fragment string) error {
	if _, _, err := net.SplitHostPort(v.address); err != nil {
		return fmt.Errorf("--address: %w; want one such as 127.0.0.1:8080", err)
	}
	if !ui.Loopback(v.address) {
		return fmt.Errorf("--address %s is not on the loopback interface, and the page would show to others what you may read; "+
			"from another machine reach it by: ssh -L 8080:127.0.0.1:8080", v.address)
	}
	page, err := v.page(ctx)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", v.address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", v.address, err)
	}
	secret := rand.Text()
	server := &http.Server{
		Handler:           ui.OnLoopback(ui.Below(secret, page)),
		ReadHeaderTimeout: 10 * time.Second,
		// Streams end with the command.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	v.print("http://%s/%s/%s", listener.Addr(), secret, fragment)
	v.say("Serving to this machine alone, with your own rights. Ctrl-C ends it.")
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// page makes the page, and checks whether there is anything that it may show.
func (v *showing) page(ctx context.Context) (http.Handler, error) {
	namespace, err := v.namespace()
	if err != nil {
		return nil, err
	}
	if v.everywhere {
		namespace = ""
	}
	config, err := v.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	// A page reads in bursts, as many as there are changes and readers; the page itself
	// asks for one thing at a time.
	config.QPS, config.Burst = 50, 100
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	reader := ui.NewCluster(client, kube, namespace)
	if _, err := reader.Transactions(ctx); err != nil {
		return nil, explain("look for what to show", err)
	}
	return ui.Handler(reader, ui.Options{
		LeaseOf: look.LeaseOf(systemNamespace), History: look.Revisions{Store: revision.NewStore(kube)}, Past: look.NewImages(kube),
	})
}
