package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
)

// options is what the flags say.
type options struct {
	// root is the module in which pkg is built.
	root string
	// pkg is the package of the program, as go build names it.
	pkg string
	// name is the file of the program in the image.
	name string
	// version goes into the program and into the labels.
	version string
	// versionVariable is the string variable of the program that is set to it.
	versionVariable string
	licenses        string
	// output is a directory, or a file that ends in .tar.
	output string
	// sbom is a file for the bill of materials; none if it is empty.
	sbom string
	// tag names the index in the layout.
	tag       string
	platforms []platform
}

// platform is what the program is compiled for.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

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
	fs.StringVar(&o.root, "root", ".", "`directory` of the module that has the package")
	fs.StringVar(&o.pkg, "package", "./cmd/janusd", "`package` of the program, relative to the root")
	fs.StringVar(&o.name, "name", "", "`name` of the program in the image (default the last part of the package)")
	fs.StringVar(&o.version, "version", "dev", "`version` of the program and of the image")
	fs.StringVar(&o.versionVariable, "version-variable", "janus.io/janus/internal/version.Version", "string `variable` of the program that is set to the version")
	fs.StringVar(&o.licenses, "licenses", "Apache-2.0", "SPDX `expression` for the labels")
	fs.StringVar(&o.output, "output", "dist/janusd", "`path` of the layout, an archive if it ends in .tar; what is there is replaced")
	fs.StringVar(&o.sbom, "sbom", "", "`file` for the software bill of materials, CycloneDX as JSON (default none)")
	fs.StringVar(&o.tag, "tag", "dev", "`tag` of the image in the layout")
	o.platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}}
	fs.Func("platforms", "`list` of platforms (default linux/amd64,linux/arm64)", func(list string) (err error) {
		o.platforms, err = parsePlatforms(list)
		return err
	})
	if err := fs.Parse(args); err != nil {
		return options{}, err
	}
	if o.name == "" {
		o.name = path.Base(o.pkg)
	}
	return o, nil
}

func parsePlatforms(list string) ([]platform, error) {
	var platforms []platform
	for p := range strings.SplitSeq(list, ",") {
		system, arch, found := strings.Cut(p, "/")
		if !found {
			return nil, fmt.Errorf("%q is not written as os/arch", p)
		}
		platforms = append(platforms, platform{system, arch})
	}
	return platforms, nil
}

// run builds the image, writes it and returns the digest of its index.
func run(ctx context.Context, o options) (string, error) {
	work, err := os.MkdirTemp("", "janus-image-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }()

	var programs []program
	for _, p := range o.platforms {
		built, err := compile(ctx, o, p, work)
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
		if err := writeSBOM(o, programs, digest.String()); err != nil {
			return "", fmt.Errorf("write %s: %w", o.sbom, err)
		}
	}
	return digest.String(), nil
}
