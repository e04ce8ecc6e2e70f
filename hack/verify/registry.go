package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// newRegistry returns a registry that keeps what it gets in memory.
func newRegistry() http.Handler {
	return registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0)))
}

// runRegistry serves a registry until it is told to end, and prints where.
func runRegistry(ctx context.Context, args []string, out, explain io.Writer) error {
	fs := flag.NewFlagSet("registry", flag.ContinueOnError)
	if err := parse(fs, args, explain); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out, listener.Addr())
	server := &http.Server{Handler: newRegistry(), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// runPush pushes the image in an OCI layout and prints its digest.
func runPush(ctx context.Context, args []string, out, explain io.Writer) error {
	fs := flag.NewFlagSet("push", flag.ContinueOnError)
	archive := fs.String("layout", "", "`file` with an OCI layout, a .tar")
	to := fs.String("to", "", "`repository` to push to, such as REGISTRY/janusd")
	tag := fs.String("tag", "", "`tag` to give it there")
	if err := parse(fs, args, explain, "layout", "to", "tag"); err != nil {
		return err
	}
	p, err := at(ctx, *to)
	if err != nil {
		return err
	}
	return withLayout(*archive, func(index v1.ImageIndex) error {
		if err := remote.WriteIndex(p.Tag(*tag), index, p.options...); err != nil {
			return err
		}
		digest, err := index.Digest()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, digest)
		return err
	})
}
