package main

import (
	"regexp"
	"strings"
)

const flagsIntro = `# janusd: every flag

<!-- Generated from janusd --help by make generate. Do not edit. -->

The exit status is 0 after an orderly stop, 1 if janusd cannot run, and 2 for bad flags. [Observability](../observability.md)
explains metrics, profiles and traces; [scale-out](../scale-out.md) explains shards; [security](../security.md#enforced-locks)
explains enforced locks; [kubectl janus](../kubectl-janus.md#served-by-janusd) shows the page that ` + "`--ui`" + ` serves.

| flag | value | default | meaning |
|---|---|---|---|
`

var (
	flagLine   = regexp.MustCompile(`^ +(?:-\w, )?--([a-z-]+)(?: ([A-Za-z]+))?  +(.*)$`)
	defaultsTo = regexp.MustCompile(` ?\(default "?([^")]*)"?\)`)
)

// flagsPage makes a table of what a command says of its flags.
func flagsPage(help string) string {
	out := flagsIntro
	name, value, text := "", "", ""
	row := func() {
		if name == "" || name == "help" {
			return
		}
		fallback := ""
		if found := defaultsTo.FindStringSubmatch(text); found != nil {
			fallback = "`" + found[1] + "`"
			text = defaultsTo.ReplaceAllString(text, "")
		}
		out += "| `--" + name + "` | " + value + " | " + fallback + " | " + strings.ReplaceAll(text, "|", `\|`) + " |\n"
	}
	_, flags, _ := strings.Cut(help, "Flags:\n")
	for _, line := range strings.Split(flags, "\n") {
		if found := flagLine.FindStringSubmatch(line); found != nil {
			row()
			name, value, text = found[1], found[2], found[3]
			continue
		}
		text = strings.TrimSpace(text + " " + strings.TrimSpace(line))
	}
	row()
	return out
}
