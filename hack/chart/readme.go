package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// aboveValues is what the README says before them. What the chart is for, and how it is
// installed, is in the docs.
const aboveValues = `<!-- Made by make generate from values.yaml. Edit that. -->
# Janus

Janus changes several Kubernetes objects together or not at all. This chart installs its operator, janusd, with the
CustomResourceDefinition, the rights and the admission policies. [Install](https://janus.io/janus/docs/install.md) says
what to decide before, how to upgrade and how to uninstall.

` + "```sh" + `
helm install janus oci://REGISTRY/charts/janus --version VERSION --namespace janus-system --create-namespace
` + "```" + `

REGISTRY is where a release was pushed to, and VERSION that of the release, such as 1.2.3. The chart of a release names
the image by its digest.

## Values

| value | default | meaning |
|---|---|---|
`

// writeReadme makes the README of the chart.
func writeReadme(deploy, file string) error {
	text, err := readme(filepath.Join(deploy, "chart", "janus"))
	if err != nil {
		return fmt.Errorf("make the README of the chart: %w", err)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// flags is the group of the flags of janusd, which explains those that need no more.
const flags = "janusd."

// flagOf is the flag that a value is for: workersAtOnce is --workers-at-once.
func flagOf(value string) string {
	return "--" + regexp.MustCompile("[A-Z]").ReplaceAllStringFunc(value, func(c string) string { return "-" + strings.ToLower(c) })
}

// readme lists the values of the chart with their defaults and comments.
func readme(chart string) (string, error) {
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return "", err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return "", fmt.Errorf("values.yaml: %w", err)
	}
	var out strings.Builder
	out.WriteString(aboveValues)
	if err := rows(&out, "", document.Content[0]); err != nil {
		return "", err
	}
	return out.String(), nil
}

// rows writes a row for each value that is no group of others, and for each group that has a comment.
func rows(out *strings.Builder, path string, group *yaml.Node) error {
	for i := 0; i+1 < len(group.Content); i += 2 {
		name, value := group.Content[i], group.Content[i+1]
		at := path + name.Value
		isGroup := value.Kind == yaml.MappingNode && len(value.Content) > 0
		comment := said(name.HeadComment)
		if comment == "" && path == flags {
			comment = "The flag `" + flagOf(name.Value) + "`."
		}
		if !isGroup || comment != "" {
			shown := ""
			if !isGroup {
				var err error
				if shown, err = compact(value); err != nil {
					return fmt.Errorf("%s: %w", at, err)
				}
				shown = "`" + shown + "`"
			}
			fmt.Fprintf(out, "| `%s` | %s | %s |\n", at, shown, comment)
		}
		if isGroup {
			if err := rows(out, at+".", value); err != nil {
				return err
			}
		}
	}
	return nil
}

// said is the text of a comment in one line, of which the last paragraph is about the value.
func said(comment string) string {
	paragraphs := strings.Split(comment, "\n\n")
	words := strings.Fields(strings.ReplaceAll("\n"+paragraphs[len(paragraphs)-1], "\n#", "\n"))
	return strings.ReplaceAll(strings.Join(words, " "), "|", `\|`)
}

// compact is a value as JSON, in which the chart takes it as well.
func compact(value *yaml.Node) (string, error) {
	var decoded any
	if err := value.Decode(&decoded); err != nil {
		return "", err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(decoded); err != nil {
		return "", err
	}
	return strings.TrimSpace(out.String()), nil
}
