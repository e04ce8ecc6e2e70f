package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// program is a compiled program.
type program struct {
	platform platform
	path     string
}

// compile builds the program for a platform into a directory. What is not part
// of the sources is kept out of it: paths, build ids, the state of the checkout
// and flags of the environment.
func compile(ctx context.Context, o options, p platform, dir string) (program, error) {
	out, err := filepath.Abs(filepath.Join(dir, p.os+"-"+p.arch))
	if err != nil {
		return program{}, err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -buildid= -X "+o.versionVariable+"="+o.version, "-o", out, o.pkg)
	cmd.Dir = o.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch,
		"GOFLAGS=", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return program{}, fmt.Errorf("build %s for %s: %w\n%s", o.pkg, p, err, said.Bytes())
	}
	return program{platform: p, path: out}, nil
}
