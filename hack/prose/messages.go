package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// sentence is true for more than two words in a row, of which each may be a verb of fmt.
var sentence = regexp.MustCompile(`[\pL%]+,? [\pL%]+,? [\pL%]+`)

// messages returns the messages of a Go file, each on the line that it has there. Those of
// one line are put together.
func messages(name string, text []byte) (string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	lines := map[int]string{}
	last := 0
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			node.Tag = nil
		case *ast.BasicLit:
			for i, line := range said(node) {
				at := set.Position(node.Pos()).Line + i
				lines[at] = strings.TrimSpace(lines[at] + " " + strings.TrimSpace(line))
				last = max(last, at)
			}
		}
		return true
	})
	var out strings.Builder
	for i := 1; i <= last; i++ {
		out.WriteString(lines[i] + "\n")
	}
	return out.String(), nil
}

// said returns a message by lines of the source.
func said(literal *ast.BasicLit) []string {
	value, err := strconv.Unquote(literal.Value)
	switch {
	case literal.Kind != token.STRING || err != nil || !sentence.MatchString(value):
		return nil
	case strings.HasPrefix(literal.Value, "`"):
		return strings.Split(value, "\n")
	default:
		return []string{strings.Join(strings.Fields(value), " ")}
	}
}
