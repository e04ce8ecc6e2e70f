package testcluster

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// repository makes a directory that looks like this repository, with a program
// in hack/hello.
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":             "// A comment.\nmodule janus.io/janus\n\ngo 1.26.0\n",
		"hack/hello/go.mod":  "module janus.io/janus/hack/hello\n\ngo 1.26.0\n",
		"hack/hello/main.go": "package main\n\nfunc main() {}\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestRepositoryRootIsFoundFromAModuleInside(t *testing.T) {
	root := repository(t)
	got, err := repositoryRoot(filepath.Join(root, "hack/hello"))
	if err != nil || got != root {
		t.Errorf("got %s, %v, want %s", got, err, root)
	}
	if got, err := repositoryRoot(t.TempDir()); err == nil {
		t.Errorf("a directory outside has the root %s", got)
	}
}

func TestMissingBinaryIsBuiltOnce(t *testing.T) {
	root := repository(t)
	t.Chdir(filepath.Join(root, "hack"))
	hello := binary{name: "hello", source: "hack/hello", override: "JANUS_HELLO_BINARY", cost: "a moment"}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			path, err := hello.find()
			if err != nil {
				t.Error(err)
			}
			if want := filepath.Join(root, "bin/hello"); path != want {
				t.Errorf("got %s, want %s", path, want)
			}
		})
	}
	wg.Wait()
	if _, err := os.Stat(filepath.Join(root, "bin/hello")); err != nil {
		t.Error(err)
	}
}

func TestBuildErrorCarriesWhatTheCompilerSaid(t *testing.T) {
	root := repository(t)
	if err := os.WriteFile(filepath.Join(root, "hack/hello/main.go"), []byte("package main\n\nfunc main() { oops }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	hello := binary{name: "hello", source: "hack/hello", override: "JANUS_HELLO_BINARY", cost: "a moment"}
	if _, err := hello.find(); err == nil || !strings.Contains(err.Error(), "undefined: oops") {
		t.Errorf("got %v, want the compiler's message", err)
	}
}
