package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"janus.io/janus/hack/image/internal/program"
)

// options is what the flags say.
type options struct {
	program.Source
	// with are files that are packed beside the program.
	with []string
	// output is the directory for all that is made.
	output string
	// downloads is the URL below which the archives can be downloaded; without it the
	// manifest names their files alone.
	downloads string
	// homepage is the URL of the documentation, or empty.
	homepage  string
	sbom      string
	platforms []program.Platform
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		// The flag set has explained it already.
		os.Exit(2)
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "archive:", err)
		os.Exit(1)
	}
}

const (
	defaultPlatforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64"
	defaultWith      = "cmd/kubectl-janus/kubectl_complete-janus,LICENSE"
)

func parse(args []string, explain io.Writer) (options, error) {
	var o options
	var with, platforms string
	fs := flag.NewFlagSet("archive", flag.ContinueOnError)
	fs.SetOutput(explain)
	o.AddTo(fs, "./cmd/kubectl-janus")
	fs.StringVar(&with, "with", defaultWith, "`list` of files that are packed beside the program, relative to the root")
	fs.StringVar(&o.output, "output", "dist/plugin", "`directory` for what is made")
	fs.StringVar(&o.downloads, "downloads", "", "`URL` below which the archives can be had (default none: Krew has to be given the archive)")
	fs.StringVar(&o.homepage, "homepage", "", "`URL` of the documentation, for Krew (default none)")
	fs.StringVar(&o.sbom, "sbom", "", "`file` for the software bill of materials, CycloneDX as JSON (default none)")
	fs.StringVar(&platforms, "platforms", defaultPlatforms, "`list` of platforms")
	if err := fs.Parse(args); err != nil {
		return options{}, err
	}
	o.Complete()
	for file := range strings.SplitSeq(with, ",") {
		o.with = append(o.with, filepath.Join(o.Root, file))
	}
	var err error
	if o.platforms, err = program.ParsePlatforms(platforms); err != nil {
		_, _ = fmt.Fprintln(explain, "--platforms:", err)
		return options{}, err
	}
	return o, nil
}

// run makes the archives, and what describes them.
func run(ctx context.Context, o options) error {
	work, err := os.MkdirTemp("", "janus-archive-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := os.MkdirAll(o.output, 0o755); err != nil {
		return err
	}

	var programs []program.Program
	var archives []archive
	for _, p := range o.platforms {
		built, err := o.Compile(ctx, p, work)
		if err != nil {
			return err
		}
		made, err := pack(o, built)
		if err != nil {
			return fmt.Errorf("pack %s for %s: %w", o.Name, p, err)
		}
		programs, archives = append(programs, built), append(archives, made)
	}
	if err := writeManifest(o, archives); err != nil {
		return fmt.Errorf("write the manifest for Krew: %w", err)
	}
	if o.sbom == "" {
		return nil
	}
	if err := o.WriteBill(o.sbom, programs, component(archives)); err != nil {
		return fmt.Errorf("write %s: %w", o.sbom, err)
	}
	return nil
}

// component is what a bill of materials is of: the program in all these archives.
func component(archives []archive) cdx.Component {
	var files []cdx.Component
	for _, a := range archives {
		files = append(files, cdx.Component{
			BOMRef: a.file, Type: cdx.ComponentTypeFile, Name: a.file,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: a.sha256}},
		})
	}
	return cdx.Component{Type: cdx.ComponentTypeApplication, Components: &files}
}
