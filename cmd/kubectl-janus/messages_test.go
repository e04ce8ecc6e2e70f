package main

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// messageRules are what no message of the plugin does.
var messageRules = []struct {
	name  string
	wrong *regexp.Regexp
}{
	{"a message tells, and asks nothing", regexp.MustCompile(`\?$|\? [a-z]`)},
	{"it names the noun: no words such as these", regexp.MustCompile(`\b(as whom|somebody|take[ns]? back|not well|in hand|there is to say|what is left)\b`)},
	{"it says nothing of the code", regexp.MustCompile(`\b(strconv|unmarshal|nil|struct)\b`)},
	{"it counts in words that fit one", regexp.MustCompile(`\b1 [a-z]+s\b`)},
	{"an error begins as a part of a sentence, or with a kind", regexp.MustCompile(`^(There|The|No|It|You|This|Cannot|Failed)\b`)},
	{"an error has no full stop at its end", regexp.MustCompile(`[a-z]\.$`)},
}

// TestMessagesKeepToTheRules holds each text of an error against the rules.
func TestMessagesKeepToTheRules(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	read := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 || !makesError(call) {
				return true
			}
			if literal, ok := call.Args[0].(*ast.BasicLit); ok {
				text, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				read++
				for _, rule := range messageRules {
					assert.NotRegexp(t, rule.wrong, text, "%s: %s", name, rule.name)
				}
			}
			return true
		})
	}
	assert.Greater(t, read, 100)
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
		`strconv.ParseBool: parsing "server": invalid syntax`, "There is no such thing", "what is to be changed? give manifests",
	} {
		broken := false
		for _, rule := range messageRules {
			broken = broken || rule.wrong.MatchString(text)
		}
		assert.True(t, broken, text)
	}
}
