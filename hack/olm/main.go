package main

import (
	"bytes"
	"embed"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	version := flag.String("version", "v0.0.0-dev", "that of the release, with a `v` in front")
	output := flag.String("output", "dist/olm", "`directory` of the bundle, and of policies.yaml")
	root := flag.String("root", "../..", "`directory` of the repository")
	flag.Parse()
	if err := run(os.Stdin, *root, *version, *output); err != nil {
		fmt.Fprintln(os.Stderr, "olm:", err)
		os.Exit(1)
	}
}

// run reads the manifests, and writes the bundle.
func run(manifests io.Reader, root, version, output string) error {
	if !regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`).MatchString(version) {
		return fmt.Errorf("%q is no version such as v1.2.3 or v1.2.3-rc.1", version)
	}
	text, err := io.ReadAll(manifests)
	if err != nil {
		return fmt.Errorf("read the manifests: %w", err)
	}
	objects, err := decode(text)
	if err != nil {
		return err
	}
	icon, err := os.ReadFile(filepath.Join(root, "docs", "icon.svg"))
	if err != nil {
		return err
	}
	example, err := os.ReadFile(filepath.Join(root, "examples", "deploy-v2", "transaction.yaml"))
	if err != nil {
		return err
	}
	b := bundle{version: strings.TrimPrefix(version, "v"), files: map[string][]byte{}, icon: base64.StdEncoding.EncodeToString(icon)}
	if b.example, err = yaml.YAMLToJSON(example); err != nil {
		return fmt.Errorf("read the example: %w", err)
	}
	if err := b.add(objects); err != nil {
		return err
	}
	return b.write(output)
}

// object is a manifest.
type object map[string]any

func (o object) kind() string { kind, _ := o["kind"].(string); return kind }

func (o object) name() string { return field[string](o, "metadata", "name") }

// field is a value somewhere in an object, or none.
func field[T any](o object, path ...string) T {
	var at any = map[string]any(o)
	for _, name := range path {
		in, _ := at.(map[string]any)
		at = in[name]
	}
	value, _ := at.(T)
	return value
}

func decode(text []byte) (objects []object, err error) {
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var o object
		if err := yaml.Unmarshal(document, &o); err != nil {
			return nil, fmt.Errorf("read the manifests: %w", err)
		}
		if o != nil {
			objects = append(objects, o)
		}
	}
	if len(objects) == 0 {
		return nil, errors.New("read the manifests: there are none")
	}
	return objects, nil
}

// static are the files of a bundle that are the same for every release.
//
//go:embed static
var static embed.FS

// write writes the bundle to a directory, with nothing else in it.
func (b *bundle) write(output string) error {
	if err := os.RemoveAll(output); err != nil {
		return err
	}
	for name, in := range map[string]string{
		"metadata/annotations.yaml": "static/annotations.yaml", "bundle.Dockerfile": "static/bundle.Dockerfile",
	} {
		text, err := static.ReadFile(in)
		if err != nil {
			return err
		}
		b.files[name] = text
	}
	for name, text := range b.files {
		path := filepath.Join(output, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
