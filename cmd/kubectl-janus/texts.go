package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v2"

	"janus.io/janus/internal/bundle"
	"janus.io/janus/internal/content"
)

// What reads manifests, as kubectl does, drops some of what is in them in silence, or says
// what is wrong in words of Go. This looks at the text before.

// checkedTexts looks at the texts of local files, of stdin, and of what is downloaded. It gives those
// that are read once, by their names: all but files, and what comes through a pipe, such as the
// <(command) of a shell.
func (f sources) checkedTexts(ctx context.Context) (once map[string][]byte, err error) {
	once = map[string][]byte{}
	for _, name := range f.Filenames {
		if name == "-" || isURL(name) {
			if once[name], err = readOnce(ctx, name); err != nil {
				return nil, err
			}
			if err := checkText(calledSource(name), once[name]); err != nil {
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

func readOnce(ctx context.Context, name string) ([]byte, error) {
	if name != "-" {
		return download(ctx, name)
	}
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		return nil, fmt.Errorf("read stdin: %w", err)
	}
	return data, nil
}

// isPipe reports whether a file cannot be read again from its beginning.
func isPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeCharDevice) != 0
}

// files are the local files that a name stands for.
func (f sources) files(name string) []string {
	if strings.HasPrefix(name, bundle.Scheme) {
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
	for isJSON := utilyaml.IsJSONBuffer(data); ; isJSON = false {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return nil //nolint:nilerr // who reads the manifests says so in its own words
		}
		if isJSON {
			if document, err = checkValues(source, document); err != nil {
				return err
			}
		}
		if err := checkDocument(source, document); err != nil {
			return err
		}
	}
}

// checkValues checks the values of JSON at the beginning of a text: these need no line --- between them.
// It returns what follows them.
func checkValues(source string, document []byte) ([]byte, error) {
	values := json.NewDecoder(bytes.NewReader(document))
	for {
		rest := document[values.InputOffset():]
		var value json.RawMessage
		if values.Decode(&value) != nil {
			return rest, nil
		}
		if err := checkDocument(source, value); err != nil {
			return nil, err
		}
	}
}

func checkDocument(source string, document []byte) error {
	if content.GoesOn(document) {
		return fmt.Errorf("read the manifests: %s goes on after the end of an object, %s, and what follows would be left out: put a line --- before it", source, nameIn(document))
	}
	_, strict := yaml.YAMLToJSONStrict(document)
	var object map[string]any
	if err := yaml.Unmarshal(document, &object); err != nil {
		return nil //nolint:nilerr // as above
	}
	if strict != nil {
		// Apart from keys that are there twice both read the same.
		return fmt.Errorf("read the manifests: %s has a key twice in one mapping, and only the last would count: %s", source, oneLine(strict))
	}
	return checkItems(source, object, false)
}

// oneLine is an error of the YAML library, whose text has several lines.
func oneLine(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "\n"); i >= 0 {
		text = text[i:]
	}
	return strings.TrimSpace(text)
}

// nameIn is the kind and the name of the first object in a text.
func nameIn(document []byte) string {
	var object struct {
		Kind     string
		Metadata struct{ Name string }
	}
	if goyaml.NewDecoder(bytes.NewReader(document)).Decode(&object) != nil || object.Kind == "" {
		return "which has no kind"
	}
	return strings.TrimSpace(object.Kind + " " + object.Metadata.Name)
}

// checkItems refuses an object with a list items: whatever reads it, here and in janusd,
// takes it for a list of objects. A List in a List is refused too.
func checkItems(source string, list map[string]any, inList bool) error {
	items, isList := list["items"].([]any)
	if !isList {
		return nil
	}
	kind, _ := list["kind"].(string)
	metadata, _ := list["metadata"].(map[string]any)
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
