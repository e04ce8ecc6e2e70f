package snapshot

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"janus.io/janus/test/testcluster"
)

// update rewrites the golden files. Other files of tests in this package use it
// too: a flag can be defined only once.
var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	flag.Parse()
	status := testcluster.Main(m, testcluster.Options{ControllerManager: true, CRDs: "../deploy/crd"})
	if status == 0 {
		if err := goleak.Find(connections()...); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	os.Exit(status)
}

// golden compares got with a file under testdata, or with -update writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
}

// connections are no leak.
func connections() []goleak.Option {
	var out []goleak.Option
	for _, function := range testcluster.Connections() {
		out = append(out, goleak.IgnoreAnyFunction(function))
	}
	return out
}
