package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"janus.io/janus/hack/image/internal/program"
)

// options is what the flags say.
type options struct {
	program.Source
	// output is a directory, or a file that ends in .tar.
	output string
	// sbom is a file for the bill of materials; none if it is empty.
	sbom string
	// tag names the index in the layout.
	tag       string
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
	digest, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	fmt.Println(digest)
}

func parse(args []string, explain io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("image", flag.ContinueOnError)
	fs.SetOutput(explain)
	o.AddTo(fs, "./cmd/janusd")
	fs.StringVar(&o.output, "output", "dist/janusd", "`path` of the layout, an archive if it ends in .tar; what is there is replaced")
	fs.StringVar(&o.sbom, "sbom", "", "`file` for the software bill of materials, CycloneDX as JSON (default none)")
	fs.StringVar(&o.tag, "tag", "dev", "`tag` of the image in the layout")
	o.platforms = []program.Platform{{OS: "linux", Arch: "amd64"}, {OS: "linux", Arch: "arm64"}}
	fs.Func("platforms", "`list` of platforms (default linux/amd64,linux/arm64)", func(list string) (err error) {
		o.platforms, err = program.ParsePlatforms(list)
		return err
	})
	if err := fs.Parse(args); err != nil {
		return options{}, err
	}
	o.Complete()
	return o, nil
}

// run builds the image, writes it and returns the digest of its index.
func run(ctx context.Context, o options) (string, error) {
	work, err := os.MkdirTemp("", "janus-image-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }()

	var programs []program.Program
	for _, p := range o.platforms {
		built, err := o.Compile(ctx, p, work)
		if err != nil {
			return "", err
		}
		programs = append(programs, built)
	}
	index, err := makeIndex(o, programs)
	if err != nil {
		return "", fmt.Errorf("make the image: %w", err)
	}
	if err := write(index, o.tag, o.output); err != nil {
		return "", fmt.Errorf("write %s: %w", o.output, err)
	}
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	if o.sbom != "" {
		image := cdx.Component{
			Type:       cdx.ComponentTypeContainer,
			Properties: &[]cdx.Property{{Name: "org.opencontainers.image.digest", Value: digest.String()}},
		}
		if err := o.WriteBill(o.sbom, programs, image); err != nil {
			return "", fmt.Errorf("write %s: %w", o.sbom, err)
		}
	}
	return digest.String(), nil
}
