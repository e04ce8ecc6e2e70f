// Command unwrap makes one line of each paragraph of the descriptions in CRDs, in place.
// controller-gen keeps the line ends of the Go comments, which kubectl explain shows as they
// are, and wraps at its own width besides.
package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	for _, path := range os.Args[1:] {
		if err := unwrapFile(path); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func unwrapFile(path string) error {
	text, err := os.ReadFile(path) //nolint:gosec // the Makefile names it
	if err != nil {
		return fmt.Errorf("unwrap: %w", err)
	}
	if err := os.WriteFile(path, []byte(unwrap(string(text))), 0o600); err != nil { //nolint:gosec // it is the file that was read
		return fmt.Errorf("unwrap: %w", err)
	}
	return nil
}

// unwrap joins the lines of the paragraphs in the block scalars of descriptions.
func unwrap(text string) string {
	var out []string
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		if !strings.HasSuffix(lines[i], "description: |-") {
			continue
		}
		depth := indentOf(lines[i]) + 2
		paragraph := ""
		end := func() {
			if paragraph != "" {
				out = append(out, strings.Repeat(" ", depth)+paragraph)
				paragraph = ""
			}
		}
		for ; i+1 < len(lines) && (lines[i+1] == "" || indentOf(lines[i+1]) >= depth); i++ {
			switch line := strings.TrimSpace(lines[i+1]); {
			case line == "":
				end()
				out = append(out, "")
			case indentOf(lines[i+1]) > depth, strings.HasPrefix(line, "- "):
				end()
				out = append(out, lines[i+1]) // An item of a list, or an example.
			case paragraph == "":
				paragraph = line
			default:
				paragraph += " " + line
			}
		}
		end()
	}
	return strings.Join(out, "\n")
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
