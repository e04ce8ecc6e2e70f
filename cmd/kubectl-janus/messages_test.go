package main

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/harness"
)

// rule is what no message of the plugin does.
type rule struct {
	name  string
	wrong *regexp.Regexp
}

// messageRules are for all that is said, and errorRules for errors besides.
var (
	messageRules = []rule{
		{"it names the noun: no words such as these", regexp.MustCompile(`\b(as whom|somebody|take[ns]? back|not well|in hand|there is to say|what is left)\b`)},
		{"it says nothing of the code, nor of what is behind the API server", regexp.MustCompile(`\b(strconv|unmarshal|nil|struct|etcd|etcdserver|reconcile[rd]?|requeue|goroutine|informer|checkpoint|CAS|saga|pivot|kin|heir)\b`)},
		{"it counts in words that fit one", regexp.MustCompile(`\b1 [a-z]+s\b`)},
		{"it says a phase as people do", regexp.MustCompile(`rolledback`)},
	}
	errorRules = []rule{
		{"a message tells, and asks nothing", regexp.MustCompile(`\?$|\? [a-z]`)},
		{"an error begins as a part of a sentence, or with a kind", regexp.MustCompile(`^(There|The|No|It|You|This|Cannot|Failed)\b`)},
		{"an error has no full stop at its end", regexp.MustCompile(`[a-z]\.$`)},
	}
	// namesObject is what a message names its object by: a value, a flag, a variable, or a noun of the field.
	namesObject = regexp.MustCompile(`%[+#]?[svqdcTt]|--[a-z]|\$|(?i)\b(transactions?|manifests?|namespaces?|serviceaccounts?|locks?|leases?|plan|names?|revision|before-image|objects?|events?|output|definition|packages?|KIND/NAME|json|API server|Crossplane|server|kinds?|cluster|users?|spec|page|command|patch|readyWhen|address|value|history|client|stdin|findings|kubeconfig)\b`)
)

// parts are said only behind what names the object, or of the command itself.
var parts = []string{"it was deleted", "interrupted", "nothing is changed: see above what stands in the way"}

// sentences counts those of a message. What comes after a semicolon is one.
func sentences(text string) int {
	n := 1 + strings.Count(text, "; ")
	return n + len(regexp.MustCompile(`[.!?] +[A-Z]`).FindAllString(text, -1))
}

// TestMessagesKeepToTheRules holds each text of an error, and all else that is said, against the rules.
func TestMessagesKeepToTheRules(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	errs, said := 0, 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			at, isError := textOf(call)
			if at < 0 || at >= len(call.Args) {
				return true
			}
			text, literal := constant(call.Args[at])
			if !literal {
				return true
			}
			rules := messageRules
			if said++; isError {
				errs++
				rules = append(slices.Clip(rules), errorRules...)
				if !slices.Contains(parts, text) {
					assert.Regexp(t, namesObject, text, "%s: it names its object", name)
				}
			}
			for _, rule := range rules {
				assert.NotRegexp(t, rule.wrong, text, "%s: %s", name, rule.name)
			}
			assert.LessOrEqual(t, sentences(text), 2, "%s: it has two sentences at most: %s", name, text)
			return true
		})
	}
	assert.Greater(t, errs, 150)
	assert.Greater(t, said, 200)
}

// TestWhatTransactionsSayKeepsToTheRules holds the texts of conditions, items and events against the rules.
// What they are about is said before each: the operation and its target.
func TestWhatTransactionsSayKeepsToTheRules(t *testing.T) {
	said := 0
	for _, dir := range []string{"engine", "internal", "mutate", "snapshot", "revision", "packages", "controller"} {
		err := filepath.WalkDir(filepath.Join(harness.Root(), dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(gotoken.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				for _, arg := range call.Args {
					text, literal := constant(arg)
					if !literal || !strings.Contains(text, " ") || !saysSo(call) {
						continue
					}
					said++
					for _, rule := range messageRules {
						assert.NotRegexp(t, rule.wrong, text, "%s: %s", path, rule.name)
					}
					assert.LessOrEqual(t, sentences(text), 2, "%s: it has two sentences at most: %s", path, text)
				}
				return true
			})
			return nil
		})
		require.NoError(t, err)
	}
	assert.Greater(t, said, 300)
}

// saysSo reports whether the texts that a call is given are for people.
func saysSo(call *ast.CallExpr) bool {
	if makesError(call) {
		return true
	}
	name := ""
	switch of := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = of.Sel.Name
	case *ast.Ident:
		name = of.Name
	}
	return slices.Contains([]string{"New", "WithHint", "Sprintf", "fail", "refuse", "warn", "invalid"}, name)
}

// textOf is which argument of a call is the text of a message, and whether it is that of an error; -1 if
// it is no such call.
func textOf(call *ast.CallExpr) (at int, isError bool) {
	if makesError(call) {
		return 0, true
	}
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return -1, false
	}
	switch of.Sel.Name {
	case "say", "print", "cannot", "Sprintf":
		return 0, false
	case "is", "announce", "line":
		return 1, false
	}
	return -1, false
}

// constant is a text that is written out, in one piece or in several.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		x, known := constant(e.X)
		y, too := constant(e.Y)
		if !known {
			x = "%s"
		}
		if !too {
			y = "%s"
		}
		return x + y, known || too
	}
	return "", false
}

func makesError(call *ast.CallExpr) bool {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, _ := of.X.(*ast.Ident)
	return from != nil && (from.Name == "errors" && of.Sel.Name == "New" || from.Name == "fmt" && of.Sel.Name == "Errorf")
}

// Texts that were seen once, each against the rule that it breaks.
func TestTheRulesFindWhatWasWrong(t *testing.T) {
	for _, text := range []string{
		"as whom? --service-account names the one", "2 of the above are not well", "all 1 changes are in effect",
		`strconv.ParseBool: parsing "server": invalid syntax`, "etcdserver: request is too large", "dag rolledback", "There is no such thing", "what is to be changed? give manifests",
	} {
		broken := false
		for _, rule := range append(slices.Clip(messageRules), errorRules...) {
			broken = broken || rule.wrong.MatchString(text)
		}
		assert.True(t, broken, text)
	}
}
