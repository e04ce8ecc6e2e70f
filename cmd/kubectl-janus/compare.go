package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/content"
)

// externalDiff is the variable by which people choose the program that kubectl diff runs.
const externalDiff = "KUBECTL_EXTERNAL_DIFF"

// plainOption is what kubectl diff takes for an option of the program.
var plainOption = regexp.MustCompile(`^[a-zA-Z0-9-=]+$`)

// compare has a program show a plan. It goes by the rules of kubectl diff, so that a program
// that was chosen for that does for this too.
func (s *session) compare(ctx context.Context, command string, d draft, t *api.Transaction) error {
	live, err := os.MkdirTemp("", "LIVE-")
	if err != nil {
		return fmt.Errorf("make a directory for %s: %w", externalDiff, err)
	}
	defer func() { _ = os.RemoveAll(live) }()
	merged, err := os.MkdirTemp("", "MERGED-")
	if err != nil {
		return fmt.Errorf("make a directory for %s: %w", externalDiff, err)
	}
	defer func() { _ = os.RemoveAll(merged) }()

	untold, drafted := false, d.changes()
	for i := range t.Status.Items {
		item := &t.Status.Items[i]
		switch {
		case item.Plan == nil || item.Plan.Effect == api.EffectDeferred:
			untold = true
			s.remark(t, i, nil)
		case item.Plan.Effect == api.EffectNone:
			s.remark(t, i, nil)
		default:
			sides := sidesOf(item, s.liveOf(ctx, item), s.contentOf(ctx, drafted, t, i))
			s.remark(t, i, sides.vague)
			if sides.whole {
				s.say("    fields that the plan does not list are as in the content, without what the API server adds")
			}
			if err := sides.write(live, merged); err != nil {
				return fmt.Errorf("write what %s is to compare: %w", externalDiff, err)
			}
		}
	}
	return s.start(ctx, command, live, merged, untold)
}

// start runs the program on the two directories.
func (s *session) start(ctx context.Context, command, live, merged string, untold bool) error {
	name, options, _ := strings.Cut(command, " ")
	args := []string{live, merged}
	for option := range strings.SplitSeq(options, " ") {
		switch {
		case plainOption.MatchString(option):
			args = append(args, option)
		case option != "":
			s.say("%s: the option %s is left out, as by kubectl diff: it may have letters, digits, dashes and equals signs", externalDiff, option)
		}
	}
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // It is the choice of the user.
	cmd.Stdout, cmd.Stderr = s.Out, s.ErrOut
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil && untold:
		return &exitError{code: exitDiffers}
	case err == nil:
		return nil
	case errors.As(err, &exit) && exit.ExitCode() == exitDiffers:
		return &exitError{code: exitDiffers}
	default:
		return fmt.Errorf("run %s (%s): %w", name, externalDiff, err)
	}
}

// remark says on standard error what the files do not.
func (s *session) remark(t *api.Transaction, i int, vague []string) {
	item := &t.Status.Items[i]
	p := item.Plan
	switch {
	case p == nil:
		s.say("%s %s: what the change would do is not known yet", item.Name, item.Target.String())
		return
	case p.Deferred == "" && p.More == 0 && len(item.Taken) == 0 && len(item.Warnings) == 0 && len(vague) == 0:
		return
	}
	s.say("%s %s", item.Name, item.Target.String())
	if p.Deferred != "" {
		s.say("    cannot be told yet: %s", p.Deferred)
	}
	for _, field := range vague {
		s.say("    the values of %s are cut", field)
	}
	printRemarks(s.ErrOut, item, releasedTo(t, i))
}

// liveOf reads the object of an item, with the rights of anyone who asks, if there is a value
// that is too long for a plan; nothing if it cannot be read. Of confidential kinds nothing
// is: a mask is short.
func (s *session) liveOf(ctx context.Context, item *api.Item) any {
	if !slices.ContainsFunc(item.Plan.Fields, func(f api.FieldChange) bool { return strings.HasSuffix(f.Before, "…") }) {
		return nil
	}
	mapper, err := s.flags.ToRESTMapper()
	if err != nil {
		return nil
	}
	kind := schema.FromAPIVersionAndKind(item.Target.APIVersion, item.Target.Kind)
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil
	}
	client, err := s.dynamic()
	if err != nil {
		return nil
	}
	u, err := client.Resource(mapping.Resource).Namespace(item.Target.Namespace).Get(ctx, item.Target.Name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return u.Object
}

// changes are those of a draft, with the contents that are stored beside it.
func (d draft) changes() []api.Change {
	if d.Unstructured == nil {
		return nil
	}
	t, err := typed(d.DeepCopy())
	if err != nil {
		return nil
	}
	return t.Spec.Changes
}

// contentOf is the content of a change, or nothing: that of the Transaction, or of the draft of
// it whose contents were stored beside it, or else what its source holds, if that is not
// confidential and still is what the plan was made of. It is read with the rights of anyone who asks.
func (s *session) contentOf(ctx context.Context, drafted []api.Change, t *api.Transaction, i int) any {
	if i >= len(t.Spec.Changes) {
		return nil
	}
	change, from := t.Spec.Changes[i], t.Spec.Changes[i].ContentFrom
	if from != nil && from.Confidential() {
		return nil
	}
	if i < len(drafted) && drafted[i].Content != nil {
		change = drafted[i]
	}
	if change.Content != nil {
		object, err := decode(change.Content.Raw)
		if err != nil {
			return nil
		}
		return object
	}
	if from == nil {
		return nil
	}
	client, err := s.dynamic()
	if err != nil {
		return nil
	}
	source, err := client.Resource(configMaps).Namespace(t.Namespace).Get(ctx, from.Ref().Name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	data, found := content.Value(source, from.Ref().Key)
	if !found || content.Digest(data) != t.Status.Items[i].ContentDigest {
		return nil
	}
	object, err := content.Decode(data)
	if err != nil {
		return nil
	}
	return object
}

// write writes both sides into their directories.
func (s sides) write(live, merged string) error {
	for dir, t := range map[string]tree{live: s.live, merged: s.merged} {
		text, err := t.yaml()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, s.file()), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
