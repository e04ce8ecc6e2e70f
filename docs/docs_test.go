package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
)

const root = ".."

// The reference is generated; make verify compares it with what make generate makes. These
// check whether the generator has found everything.
func TestTheReferenceListsTheFlagsOfJanusd(t *testing.T) {
	command := exec.CommandContext(t.Context(), "go", "run", "./cmd/janusd", "--help")
	command.Dir = root
	help, err := command.Output()
	require.NoError(t, err)

	flags := submatches(string(help), `(?m)^ {6}--([a-z-]+)`)
	require.NotEmpty(t, flags)
	assert.ElementsMatch(t, flags, submatches(read(t, "docs/reference/janusd.md"), "(?m)^\\| `--([a-z-]+)` \\|"))
}

func TestTheReferenceListsTheMetrics(t *testing.T) {
	var metrics []string
	for _, file := range glob(t, "controller/*.go", "packages/controller/*.go", "cmd/janusd/*.go") {
		metrics = append(metrics, submatches(read(t, file), `"(janus_[a-z_]+)"`)...)
	}
	require.NotEmpty(t, metrics)
	assert.ElementsMatch(t, metrics, submatches(read(t, "docs/reference/metrics.md"), "(?m)^\\| `(janus_[a-z_]+)` \\|"))
}

// The reasons are the string constants of two packages: those of errors, and those that the
// engine has besides. The page has them in a table, or in the sentence below it that lists
// those of conditions.
func TestTheReferenceListsTheReasons(t *testing.T) {
	_, page, found := strings.Cut(read(t, "docs/reference/reasons.md"), "| reason |")
	require.True(t, found)
	table, rest, _ := strings.Cut(page, "\n\n")
	_, rest, found = strings.Cut(rest, "Conditions have these reasons while all is well: ")
	require.True(t, found)
	sentence, events, _ := strings.Cut(rest, ".\n")
	listed := append(submatches(table, "(?m)^\\| `([A-Za-z]+)` \\|"), submatches(sentence, "`([A-Za-z]+)`")...)
	assert.ElementsMatch(t, reasonsIn(t, "internal/errclass/*.go", "engine/plan/*.go"), listed)
	for _, reason := range reasonsIn(t, "controller/recorder.go") {
		assert.Contains(t, events, "`"+reason+"`", "the reason of an event")
	}
}

// A reason that is no constant would be missed by the test above.
func TestReasonsAreConstants(t *testing.T) {
	for _, file := range sources(t, "controller", "engine", "internal", "lockmgr", "mutate", "revision", "snapshot") {
		literals := submatches(read(t, file), `(?:errclass\.New\([^,()]+, |\.fail\([^,()]+, |\b[rR]eason: +|[rR]eason = |\.event\(\w+, )("[A-Z]\w*")`)
		assert.Empty(t, literals, file)
	}
}

// reasonsIn returns the values of the untyped string constants that are one word, as a
// reason is.
func reasonsIn(t *testing.T, patterns ...string) []string {
	t.Helper()
	word := regexp.MustCompile(`^[A-Z][A-Za-z]+$`)
	var out []string
	for _, file := range glob(t, patterns...) {
		for _, value := range stringConstants(t, file, false) {
			if word.MatchString(value) {
				out = append(out, value)
			}
		}
	}
	require.NotEmpty(t, out)
	return out
}

func TestTheReferenceNamesTheFieldsOfTheAPI(t *testing.T) {
	page := read(t, "docs/reference/transaction.md")
	for _, kind := range []any{api.TransactionSpec{}, api.TransactionStatus{}, api.Change{}, api.Item{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(kind)) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			assert.Regexp(t, "(?m)^\\| `([a-zA-Z]+\\[\\]\\.)?"+name+"(\\[\\])?` \\|", page)
		}
	}
	values := stringConstants(t, "api/v1alpha1/status.go", true)
	require.NotEmpty(t, values)
	for _, value := range values {
		assert.Contains(t, page+read(t, "docs/reference/reasons.md"), "`"+value+"`")
	}
}

// A newcomer reads it to the end.
func TestTheReadmeIsShort(t *testing.T) {
	assert.LessOrEqual(t, len(read(t, "README.md")), 12_000)
}

// Every page is on the front page.
func TestTheFrontPageLeadsToEveryPage(t *testing.T) {
	front := read(t, "docs/README.md")
	for _, file := range glob(t, "docs/*.md", "docs/reference/*.md", "docs/runbooks/*.md") {
		page := strings.TrimPrefix(file, "docs/")
		if page == "README.md" || page == "fault-plans.md" || page == "seeded-defects.md" {
			continue // The last two belong to the page about reliability.
		}
		assert.Contains(t, front, "]("+page+")")
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, file := range glob(t, "*.md", "docs/*.md", "docs/adr/*.md", "docs/reference/*.md", "docs/runbooks/*.md") {
		for _, link := range submatches(read(t, file), `\]\(([^)\s]+)\)`) {
			if strings.Contains(link, "://") {
				continue
			}
			path, anchor, _ := strings.Cut(link, "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			if !assert.FileExists(t, filepath.Join(root, target), "%s links to %s", file, link) || anchor == "" {
				continue
			}
			assert.Contains(t, anchors(read(t, target)), anchor, "%s links to %s", file, link)
		}
	}
}

func TestTheListOfDecisionsIsComplete(t *testing.T) {
	list := read(t, "docs/adr/README.md")
	for _, file := range glob(t, "docs/adr/[0-9]*.md") {
		assert.Contains(t, list, "("+filepath.Base(file)+")")
	}
}

// read reads a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(data)
}

// glob returns the files of the repository that match, tests aside.
func glob(t *testing.T, patterns ...string) []string {
	t.Helper()
	var out []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		for _, file := range found {
			relative, err := filepath.Rel(root, file)
			require.NoError(t, err)
			if !strings.HasSuffix(relative, "_test.go") {
				out = append(out, relative)
			}
		}
	}
	return out
}

// submatches returns what the group of a pattern matches, wherever it does.
func submatches(text, pattern string) []string {
	var out []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		out = append(out, match[1])
	}
	return out
}

// sources returns the Go files below directories, tests aside.
func sources(t *testing.T, dirs ...string) []string {
	t.Helper()
	var out []string
	for _, dir := range dirs {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				out = append(out, strings.TrimPrefix(path, root+string(filepath.Separator)))
			}
			return err
		}))
	}
	require.NotEmpty(t, out)
	return out
}

// stringConstants returns the values of the string constants in a Go file, also of those
// that have a type of their own, or not.
func stringConstants(t *testing.T, path string, typed bool) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var out []string
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			if spec.(*ast.ValueSpec).Type != nil && !typed {
				continue
			}
			for _, value := range spec.(*ast.ValueSpec).Values {
				if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					text, err := strconv.Unquote(literal.Value)
					require.NoError(t, err)
					out = append(out, text)
				}
			}
		}
	}
	return out
}

// anchors returns what the headings of a page may be linked to by.
func anchors(page string) []string {
	var out []string
	for _, heading := range submatches(page, `(?m)^#+ (.+)$`) {
		words := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading), "")
		out = append(out, strings.ReplaceAll(words, " ", "-"))
	}
	return out
}
