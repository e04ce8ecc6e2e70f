package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// proven are the packages that the proofs run, with all that they need: the controller, the engine, and
// what stands behind its ports. The pages, the flags and the metrics of janusd are not among them.
var proven = []string{
	"./controller", "./engine/...", "./internal/shard",
	"./internal/wiring", "./internal/wiring/enforced", "./internal/wiring/leftovers",
}

// versionOf is a digest of the sources of some packages of this module without their comments, and of
// the versions of the modules that they need.
func versionOf(ctx context.Context, root string, packages []string) (string, error) {
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-deps", "-json=Dir,Module,GoFiles,EmbedFiles"}, packages...)...)
	list.Dir, list.Stderr = root, os.Stderr
	printed, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("list the sources: %w", err)
	}
	var lines []string
	for decoder := json.NewDecoder(bytes.NewReader(printed)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", fmt.Errorf("list the sources: %w", err)
		}
		of, err := p.lines(root)
		if err != nil {
			return "", fmt.Errorf("digest the sources: %w", err)
		}
		lines = append(lines, of...)
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(lines), "\n")))
	return hex.EncodeToString(sum[:])[:16], nil
}

// listed is a package as go list tells of it.
type listed struct {
	Dir    string
	Module *struct {
		Path, Version string
		Main          bool
	}
	GoFiles, EmbedFiles []string
}

// lines are what of a package counts: its files, or the version of its module. Go's own packages have
// no module.
func (p listed) lines(root string) ([]string, error) {
	switch {
	case p.Module == nil:
		return nil, nil
	case !p.Module.Main:
		return []string{p.Module.Path + " " + p.Module.Version}, nil
	}
	var out []string
	for _, file := range slices.Concat(p.GoFiles, p.EmbedFiles) {
		path := filepath.Join(p.Dir, file)
		content, err := code(path)
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		out = append(out, fmt.Sprintf("%s %x", filepath.ToSlash(name), sha256.Sum256(content)))
	}
	return out, nil
}

// code is a file without what changes nothing: of a Go file the tokens, which comments and blank lines
// are none of, and the comments that the compiler reads.
func code(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil || filepath.Ext(path) != ".go" {
		return content, err
	}
	var (
		out     bytes.Buffer
		tokens  scanner.Scanner
		files   = token.NewFileSet()
		invalid error
	)
	report := func(at token.Position, message string) { invalid = fmt.Errorf("%s: %s", at, message) }
	tokens.Init(files.AddFile(path, files.Base(), len(content)), content, report, 0)
	for _, is, literal := tokens.Scan(); is != token.EOF; _, is, literal = tokens.Scan() {
		_, _ = fmt.Fprintln(&out, is, literal)
	}
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, "//go:") {
			out.WriteString(line)
		}
	}
	return out.Bytes(), invalid
}
