// Command picture draws a session in a terminal, which it reads, as an SVG: a line that
// begins with $ is a command, the others are what it has printed.
package main

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"os"
	"regexp"
	"strings"
)

const (
	fontSize   = 14
	lineHeight = 20
	charWidth  = 9 // rounded up
	margin     = 18
	titleBar   = 34
	columns    = 112
)

func main() {
	if err := draw(os.Stdin, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// colours are those of words that say how something has ended.
var colours = []struct {
	word   *regexp.Regexp
	colour string
}{
	{regexp.MustCompile(`\b(Committed|committed|created)\b`), "#7ee787"},
	{regexp.MustCompile(`\b(RolledBack|RollingBack|ReadyTimeout|rolled back)\b`), "#ffa657"},
	{regexp.MustCompile(`^\s+[+].*$`), "#7ee787"},
	{regexp.MustCompile(`^\s+- .*$`), "#ff7b72"},
	{regexp.MustCompile(`^\s+~ .*$`), "#e3b341"},
}

// unbroken keeps the spaces between columns, which a browser makes one of, and not those of
// the markup.
var unbroken = strings.NewReplacer("<tspan ", "<tspan ", "\" font-", "\" font-", " ", "\u00a0")

func draw(from io.Reader, to io.Writer) error {
	var lines []string
	scanner := bufio.NewScanner(from)
	for scanner.Scan() {
		lines = append(lines, wrapped(scanner.Text())...)
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read the session: %w", err)
	}
	width, height := columns*charWidth+2*margin, titleBar+len(lines)*lineHeight+margin
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="A session with kubectl janus: a plan, a run that commits, and one that is rolled back">`+"\n", width, height, width, height)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" rx="8" fill="#0d1117"/>`+"\n", width, height)
	for i, colour := range []string{"#ff5f56", "#ffbd2e", "#27c93f"} {
		fmt.Fprintf(&out, `<circle cx="%d" cy="17" r="6" fill="%s"/>`+"\n", margin+6+i*20, colour)
	}
	fmt.Fprintf(&out, `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="%d" fill="#c9d1d9">`+"\n", fontSize)
	for i, line := range lines {
		fmt.Fprintf(&out, `<text x="%d" y="%d">%s</text>`+"\n", margin, titleBar+(i+1)*lineHeight-6, unbroken.Replace(coloured(line)))
	}
	out.WriteString("</g>\n</svg>\n")
	if _, err := io.WriteString(to, out.String()); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}

// wrapped breaks a line that is wider than the window.
func wrapped(line string) []string {
	var out []string
	for len(line) > columns {
		at := strings.LastIndexByte(line[:columns], ' ')
		if at < columns/2 {
			at = columns
		}
		out = append(out, line[:at])
		line = "    " + strings.TrimLeft(line[at:], " ")
	}
	return append(out, line)
}

func coloured(line string) string {
	if command, found := strings.CutPrefix(line, "$ "); found {
		return `<tspan fill="#79c0ff">$</tspan> <tspan fill="#ffffff" font-weight="bold">` + html.EscapeString(command) + `</tspan>`
	}
	text := html.EscapeString(line)
	for _, c := range colours {
		if c.word.MatchString(text) {
			text = c.word.ReplaceAllString(text, `<tspan fill="`+c.colour+`">$0</tspan>`)
			break
		}
	}
	return text
}
