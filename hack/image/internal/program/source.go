package program

import (
	"flag"
	"fmt"
	"path"
	"strings"
)

// Source says what a program is compiled from, and what goes into it.
type Source struct {
	// Root is the module in which Package is built.
	Root string
	// Package is the package of the program, as go build names it.
	Package string
	// Name is the file of the program.
	Name string
	// Version goes into the program and into what describes it.
	Version string
	// VersionVariable is the string variable of the program that is set to it.
	VersionVariable string
	// Licenses is an SPDX expression.
	Licenses string
}

// AddTo adds the flags that describe a source, with a package for the default.
func (s *Source) AddTo(fs *flag.FlagSet, pkg string) {
	fs.StringVar(&s.Root, "root", ".", "`directory` of the module that has the package")
	fs.StringVar(&s.Package, "package", pkg, "`package` of the program, relative to the root")
	fs.StringVar(&s.Name, "name", "", "file `name` of the program (default the last part of the package)")
	fs.StringVar(&s.Version, "version", "dev", "`version` of the program and of what is made of it")
	fs.StringVar(&s.VersionVariable, "version-variable", "janus.io/janus/internal/version.Version", "string `variable` of the program that is set to the version")
	fs.StringVar(&s.Licenses, "licenses", "Apache-2.0", "SPDX `expression` of the licenses")
}

// Complete sets what follows from the flags that were given.
func (s *Source) Complete() {
	if s.Name == "" {
		s.Name = path.Base(s.Package)
	}
}

// Platform is what a program is compiled for.
type Platform struct{ OS, Arch string }

func (p Platform) String() string { return p.OS + "/" + p.Arch }

// ParsePlatforms reads a list such as linux/amd64,linux/arm64.
func ParsePlatforms(list string) ([]Platform, error) {
	var platforms []Platform
	for p := range strings.SplitSeq(list, ",") {
		system, arch, found := strings.Cut(p, "/")
		if !found {
			return nil, fmt.Errorf("%q is not written as os/arch", p)
		}
		platforms = append(platforms, Platform{system, arch})
	}
	return platforms, nil
}
