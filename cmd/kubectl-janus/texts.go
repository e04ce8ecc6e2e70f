package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	"janus.io/janus/internal/bundle"
)

// What reads manifests, as kubectl does, drops some of what is in them in silence, or says
// what is wrong in words of Go. This looks at the text before.

// checkedTexts looks at the texts of local files, and of stdin. It gives those that can be read once,
// by their names: that of stdin, and what comes through a pipe, such as the <(command) of a shell.
func (f sources) checkedTexts() (once map[string][]byte, err error) {
	once = map[string][]byte{}
	for _, name := range f.Filenames {
		if name == "-" {
			if once[name], err = io.ReadAll(os.Stdin); err != nil {
				return nil, fmt.Errorf("read stdin: %w", err)
			}
			if err := checkText("stdin", once[name]); err != nil {
				return nil, err
			}
			continue
		}
		for _, path := range f.files(name) {
			data, err := os.ReadFile(path)
			if err != nil {
				continue // Who reads the manifests says what is wrong.
			}
			if err := checkText(path, data); err != nil {
				return nil, err
			}
			if isPipe(path) {
				once[path] = data
			}
		}
	}
	return once, nil
}

// isPipe reports whether a file cannot be read again from its beginning.
func isPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeCharDevice) != 0
}

// files are the local files that a name stands for.
func (f sources) files(name string) []string {
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") || strings.HasPrefix(name, bundle.Scheme) {
		return nil
	}
	matches := []string{name}
	if _, err := os.Stat(name); os.IsNotExist(err) {
		matches, _ = filepath.Glob(name)
	}
	var out []string
	for _, match := range matches {
		visitors, _ := resource.ExpandPathsToFileVisitors(nil, match, f.Recursive, resource.FileExtensions, nil)
		for _, v := range visitors {
			if file, ok := v.(*resource.FileVisitor); ok {
				out = append(out, file.Path)
			}
		}
	}
	return out
}

// checkText refuses a text of which something would be dropped, or mistaken for something
// else.
func checkText(source string, data []byte) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return nil //nolint:nilerr // who reads the manifests says so in its own words
		}
		if err := checkDocument(source, document); err != nil {
			return err
		}
	}
}

func checkDocument(source string, document []byte) error {
	if line := afterItsEnd(document); line != "" {
		return fmt.Errorf("read the manifests: %s has something behind a line ..., which ends a document, and it would be left out: put a line --- before it", source)
	}
	_, strict := yaml.YAMLToJSONStrict(document)
	var content map[string]any
	if err := yaml.Unmarshal(document, &content); err != nil {
		return nil //nolint:nilerr // as above
	}
	if strict != nil {
		// Apart from keys that are there twice both read the same.
		return fmt.Errorf("read the manifests: %s has a key twice in one mapping, and only the last would count: %s", source, oneLine(strict))
	}
	return checkItems(source, content, false)
}

// oneLine is an error of the YAML library, whose text has several lines.
func oneLine(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "\n"); i >= 0 {
		text = text[i:]
	}
	return strings.TrimSpace(text)
}

// afterItsEnd returns the first line of content after a line ..., which ends a YAML
// document.
func afterItsEnd(document []byte) string {
	ended := false
	for line := range strings.Lines(string(document)) {
		text := strings.TrimSpace(line)
		rest, end := strings.CutPrefix(line, "...")
		if end && (strings.TrimSpace(rest) == "" || strings.ContainsAny(rest[:1], " \t")) {
			ended, text = true, strings.TrimSpace(rest)
		}
		switch {
		case ended && text != "" && text[0] != '#' && text[0] != '%':
			return text
		}
	}
	return ""
}

// checkItems refuses an object with a list items: whatever reads it, here and in janusd,
// takes it for a list of objects. A List in a List is refused too.
func checkItems(source string, content map[string]any, inList bool) error {
	items, isList := content["items"].([]any)
	if !isList {
		return nil
	}
	kind, _ := content["kind"].(string)
	metadata, _ := content["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	var objects []map[string]any
	for _, item := range items {
		if object, ok := item.(map[string]any); ok && object["kind"] != nil {
			objects = append(objects, object)
		}
	}
	switch {
	case inList && strings.HasSuffix(kind, "List"):
		return fmt.Errorf("read the manifests: %s has a %s inside of a list: put what is in it one level up", source, kind)
	case inList, !strings.HasSuffix(kind, "List"), len(objects) < len(items):
		return fmt.Errorf("read the manifests: %s %s in %s has a list items at its top, for which Kubernetes clients, janusd among them, take it for a list of objects: "+
			"leave it out, and create it by kubectl create --raw", kind, name, source)
	}
	for _, object := range objects {
		if err := checkItems(source, object, true); err != nil {
			return err
		}
	}
	return nil
}
