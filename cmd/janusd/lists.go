package main

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/internal/namespaces"
	"janus.io/janus/internal/settings"
)

// scope is what --watch-namespaces says: names, or a selector of labels or a file by which they
// change.
type scope struct {
	names    []string // none with the others empty means all
	selector labels.Selector
	file     string
}

func (w scope) changes() bool { return w.selector != nil || w.file != "" }

// What the value of --watch-namespaces begins with if it is no list of names.
const (
	byLabel = "label:"
	byFile  = "file:"
)

// watchedBy reads the value of --watch-namespaces. Anyone who watches a namespace twice counts its
// Transactions twice, so each is named once.
func watchedBy(listed []string) (scope, error) {
	given := strings.TrimSpace(strings.Join(listed, ","))
	fail := func(err error) (scope, error) { return scope{}, fmt.Errorf("--watch-namespaces=%s: %w", given, err) }
	if text, ok := strings.CutPrefix(given, byLabel); ok {
		selector, err := labels.Parse(text)
		switch {
		case err != nil:
			return fail(err)
		case selector.Empty():
			return fail(errors.New("the selector is empty; leave the flag out to run the Transactions of all namespaces"))
		}
		return scope{selector: selector}, nil
	}
	if path, ok := strings.CutPrefix(given, byFile); ok {
		if _, err := (namespaces.File{Path: path}).Read(); err != nil {
			return fail(err)
		}
		return scope{file: path}, nil
	}
	if len(listed) == 0 {
		listed = []string{""}
	}
	names, err := namespaces.Names(listed)
	if err != nil {
		return fail(err)
	}
	return scope{names: names}, nil
}

// sensitiveKinds are the kinds that --sensitive-kinds names.
func (o options) sensitiveKinds() ([]schema.GroupKind, error) {
	kinds, err := settings.ParseKinds(o.sensitive)
	if err != nil {
		return nil, fmt.Errorf("--sensitive-kinds=%s: %w", strings.Join(o.sensitive, ","), err)
	}
	return kinds, nil
}

// labelled reads the value of --selector; nil for none.
func labelled(text string) (labels.Selector, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--selector=%s: %w", text, err)
	}
	return selector, nil
}
