package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The package doc lists the files from the top to the bottom. Who reads one is to find what
// it calls further down, and never back up.
func TestFilesCallDownOnly(t *testing.T) {
	calls := callsBetweenFiles(t)
	require.Contains(t, calls["run.go"], "step.go")
	require.Contains(t, calls["undo.go"], "locks.go")
	for from, called := range calls {
		for _, to := range called {
			assert.NotContains(t, reached(calls, to), from, "%s calls %s, which calls it back", from, to)
		}
	}
}

// callsBetweenFiles lists, for each file of the package, those that declare what it calls.
func callsBetweenFiles(t *testing.T) map[string][]string {
	t.Helper()
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	fset := token.NewFileSet()
	var files []*ast.File
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			file, err := parser.ParseFile(fset, name, nil, 0)
			require.NoError(t, err)
			files = append(files, file)
		}
	}
	uses := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	// What is imported is not known here, which are errors. Calls within the package are known.
	config := types.Config{Importer: nothingKnown{}, Error: func(error) {}}
	pkg, _ := config.Check("engine", fset, files, uses)
	calls := map[string][]string{}
	for ident, object := range uses.Uses {
		called, ok := object.(*types.Func)
		if !ok || called.Pkg() != pkg {
			continue
		}
		if receiver := called.Signature().Recv(); receiver != nil && types.IsInterface(receiver.Type()) {
			continue // It is a port.
		}
		from, to := fset.Position(ident.Pos()).Filename, fset.Position(called.Pos()).Filename
		if from != to && !slices.Contains(calls[from], to) {
			calls[from] = append(calls[from], to)
		}
	}
	return calls
}

// nothingKnown imports packages without what they declare.
type nothingKnown struct{}

func (nothingKnown) Import(name string) (*types.Package, error) {
	pkg := types.NewPackage(name, path.Base(name))
	pkg.MarkComplete()
	return pkg, nil
}

// reached lists the files to which calls lead from a file, itself included.
func reached(calls map[string][]string, from string) []string {
	out := []string{from}
	for i := 0; i < len(out); i++ {
		for _, to := range calls[out[i]] {
			if !slices.Contains(out, to) {
				out = append(out, to)
			}
		}
	}
	return out
}
