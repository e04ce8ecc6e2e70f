package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/settings"
	"janus.io/janus/internal/target"
)

// sensitivity is how a command finds out which content is confidential.
type sensitivity struct {
	system string
	kinds  []string
	flag   *pflag.Flag
}

func (y *sensitivity) addTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&y.kinds, "sensitive-kinds", nil, "comma-separated kinds, as Kind or Kind.group, whose content is stored in Secrets, besides Secret and what janusd names")
	f.StringVar(&y.system, "system-namespace", systemNamespace, "the namespace of janusd, which says there which kinds are sensitive")
	y.flag = f.Lookup("sensitive-kinds")
}

// hider tells whose content is confidential: that of Secrets, and of what it names.
type hider struct {
	all   bool
	kinds []schema.GroupKind
}

func (h hider) hides(t api.Target) bool {
	kind := schema.FromAPIVersionAndKind(t.APIVersion, t.Kind).GroupKind()
	return h.all || kind == target.SecretKind || slices.Contains(h.kinds, kind)
}

// in lists the changes whose content is confidential.
func (h hider) in(changes []api.Change) []int {
	var out []int
	for i, c := range changes {
		if c.Content != nil && h.hides(c.Target) {
			out = append(out, i)
		}
	}
	return out
}

// hider finds out which contents of the changes are confidential. If janusd does not say so, and
// no flag does, all of them are.
func (y *sensitivity) hider(ctx context.Context, s *session, changes []api.Change) (hider, error) {
	kinds, err := settings.ParseKinds(y.kinds)
	if err != nil {
		return hider{}, fmt.Errorf("--sensitive-kinds=%s: %w", strings.Join(y.kinds, ","), err)
	}
	known := hider{kinds: kinds}
	if !slices.ContainsFunc(changes, func(c api.Change) bool { return c.Content != nil && !known.hides(c.Target) }) {
		return known, nil
	}
	told, err := s.settings(ctx, y.system)
	switch {
	case err == nil:
		known.kinds = append(known.kinds, told.SensitiveKinds...)
		return known, nil
	case ctx.Err() != nil:
		return hider{}, ctx.Err()
	case y.flag.Changed:
		return known, nil
	}
	s.say("Which kinds are sensitive is not known: %v, so all contents are stored in Secrets, and no value is shown. "+
		"Name the namespace of janusd with --system-namespace, or the kinds with --sensitive-kinds.", err)
	return hider{all: true}, nil
}

// An untoldError says that janusd tells nothing of how it runs.
type untoldError string

func (e untoldError) Error() string { return string(e) }

// settings are what janusd tells of how it runs.
func (s *session) settings(ctx context.Context, namespace string) (settings.Settings, error) {
	client, err := s.kube()
	if err != nil {
		return settings.Settings{}, err
	}
	name := "ConfigMap " + namespace + "/" + settings.Name
	object, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, settings.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return settings.Settings{}, untoldError("there is no " + name + ", where a janusd of this version says so")
	case err != nil:
		return settings.Settings{}, fmt.Errorf("read %s, where janusd says so: %w", name, err)
	}
	told, err := settings.Of(object.Data)
	if err != nil {
		return settings.Settings{}, fmt.Errorf("read %s: %w", name, err)
	}
	return told, nil
}
