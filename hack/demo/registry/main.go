// Command registry serves Crossplane packages from this machine, for make demo-packages.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"janus.io/janus/test/xpkg"
)

const usage = `usage: registry serve DIRECTORY       serve DIRECTORY/NAME/VERSION.yaml as acme/NAME:VERSION
                                      until standard input ends, and print the host
       registry push HOST TAG FILE    upload FILE under a tag such as acme/bucket:v1.0.0
`

func main() {
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "serve":
		serve(args[1])
	case len(args) == 4 && args[0] == "push":
		push(xpkg.At(program{}, args[1]), args[2], args[3])
	default:
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
}

func serve(dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.yaml"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there are no packages in %s", dir)
	}
	check(err)
	registry := xpkg.Serve(program{}, nil)
	for _, file := range files {
		version := strings.TrimSuffix(filepath.Base(file), ".yaml")
		push(registry, "acme/"+filepath.Base(filepath.Dir(file))+":"+version, file)
	}
	fmt.Println(registry.Host)
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func push(to *xpkg.Registry, name, file string) {
	stream, err := os.ReadFile(file) //nolint:gosec // G703: a file is named on the command line
	check(err)
	to.Push(name, string(stream))
}

func check(err error) {
	if err != nil {
		program{}.Errorf("%v", err)
		program{}.FailNow()
	}
}

// program ends when something fails.
type program struct{}

func (program) Errorf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (program) FailNow()                          { os.Exit(1) }
func (program) Helper()                           {}
func (program) Cleanup(func())                    {}
