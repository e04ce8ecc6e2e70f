package program

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Program is a compiled program.
type Program struct {
	Platform Platform
	// Path is the file.
	Path string
}

// Compile builds the program for a platform into a directory. What is not part
// of the sources is kept out of it: paths, build ids, the state of the checkout
// and flags of the environment.
func (s Source) Compile(ctx context.Context, p Platform, dir string) (Program, error) {
	out, err := filepath.Abs(filepath.Join(dir, p.OS+"-"+p.Arch))
	if err != nil {
		return Program{}, err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -buildid= -X "+s.VersionVariable+"="+s.Version, "-o", out, s.Package)
	cmd.Dir = s.Root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Arch,
		"GOFLAGS=", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return Program{}, fmt.Errorf("build %s for %s: %w\n%s", s.Package, p, err, said.Bytes())
	}
	return Program{Platform: p, Path: out}, nil
}
