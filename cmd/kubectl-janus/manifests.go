package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/bundle"
	"janus.io/janus/internal/errclass"
)

// sources say where manifests come from, and what is to be removed besides.
type sources struct {
	resource.FilenameOptions
	remove []string
}

// addTo adds the flags that name them.
func (f *sources) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVarP(&f.Filenames, "filename", "f", nil, "files, directories, URLs or OCI artifacts (oci://HOST/REPOSITORY:TAG) with manifests; - is stdin")
	flags.BoolVarP(&f.Recursive, "recursive", "R", false, "go into the directories of a directory too")
	flags.StringVarP(&f.Kustomize, "kustomize", "k", "", "a directory with a kustomization.yaml")
	flags.StringArrayVar(&f.remove, "delete", nil, "what is deleted after the manifests, as KIND/NAME; may be repeated")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	_ = cmd.MarkFlagDirname("kustomize")
}

// named is what the flags name, for messages.
func (f sources) named() string {
	names := slices.Clone(f.Filenames)
	for i, name := range names {
		if name == "-" {
			names[i] = "what came on stdin"
		}
	}
	if f.Kustomize != "" {
		names = append(names, f.Kustomize)
	}
	return strings.Join(names, ", ")
}

// given reports whether there are any.
func (f sources) given() bool {
	return len(f.Filenames) > 0 || f.Kustomize != "" || len(f.remove) > 0
}

// manifest is an object, and where it was read.
type manifest struct {
	*unstructured.Unstructured
	source string
}

// describe names the object, in namespace, and its file.
func (m manifest) describe(namespace string) string {
	return api.Target{Kind: m.GetKind(), Namespace: namespace, Name: m.GetName()}.String() + " in " + m.source
}

// read reads the manifests, in the order of the files and of what is in them. Nothing is
// asked of the cluster.
func (f sources) read(ctx context.Context, s *session, namespace string) ([]manifest, error) {
	if len(f.Filenames) == 0 && f.Kustomize == "" {
		return nil, nil
	}
	once, err := f.checkedTexts(ctx)
	if err != nil {
		return nil, err
	}
	builder := resource.NewBuilder(s.flags).Unstructured().Local().ContinueOnError().NamespaceParam(namespace)
	if f.Kustomize != "" {
		builder = builder.FilenameParam(false, &f.FilenameOptions) // It says so if there are files, too.
		f.Filenames = nil
	}
	for n, name := range f.Filenames {
		text, isRead := once[name]
		switch one := (resource.FilenameOptions{Filenames: []string{name}, Recursive: f.Recursive}); {
		case strings.HasPrefix(name, bundle.Scheme):
			pulled, err := bundle.Pull(ctx, name)
			if err != nil {
				return nil, err
			}
			for _, file := range pulled.Files {
				source := pulled.Reference + "/" + file.Path
				if err := checkText(source, file.Data); err != nil {
					return nil, err
				}
				builder = builder.Stream(bytes.NewReader(file.Data), source)
			}
		case !isRead:
			builder = builder.FilenameParam(false, &one)
		case slices.Contains(f.Filenames[:n], name):
			return nil, fmt.Errorf("read the manifests: %s is named twice", calledSource(name))
		default:
			builder = builder.Stream(bytes.NewReader(text), calledSource(name))
		}
	}
	infos, err := builder.Flatten().Do().Infos()
	if err != nil {
		return nil, unreadable(err)
	}
	var out []manifest
	for _, info := range infos {
		u, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("read the manifests: %s is no object", info.Source)
		}
		if u.GetName() == "" && u.GroupVersionKind().GroupKind() != api.Kind.GroupKind() {
			return nil, fmt.Errorf("%s in %s has no metadata.name: a change names its target (generateName cannot be used)", u.GetKind(), info.Source)
		}
		// A Transaction is sent in one version whatever the file says: all have one schema.
		if u.GroupVersionKind() == api.BetaVersion.WithKind(api.Kind.Kind) {
			u.SetGroupVersionKind(api.Kind)
		}
		out = append(out, manifest{u, info.Source})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there are no objects in %s: name manifests with -f or -k", f.named())
	}
	return out, nil
}

// calledSource is what something with manifests is called in messages.
func calledSource(name string) string {
	if name == "-" {
		return "stdin"
	}
	return name
}

// unreadable says why manifests cannot be read, of each in one line: the builder adds their content.
func unreadable(err error) error {
	const most = 5
	causes := []error{err}
	var several utilerrors.Aggregate
	if errors.As(err, &several) {
		causes = several.Errors()
	}
	var texts []string
	for n, cause := range causes {
		if n == most {
			texts = append(texts, fmt.Sprintf("and %d more", len(causes)-most))
			break
		}
		text, _, _ := strings.Cut(cause.Error(), " in '{") // What follows is the object, which may be a Secret.
		texts = append(texts, errclass.Cut(errclass.OneLine(text), 200))
	}
	return fmt.Errorf("read the manifests: %s", strings.Join(texts, "; "))
}

// named finds what KIND/NAME or RESOURCE.GROUP/NAME names.
func (v *surveyor) named(text string) (schema.GroupVersionKind, schema.GroupVersionResource, api.Target, error) {
	var none schema.GroupVersionResource
	kind, name, ok := strings.Cut(text, "/")
	if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
		return schema.GroupVersionKind{}, none, api.Target{}, fmt.Errorf("%s: want KIND/NAME, such as configmap/settings", text)
	}
	gvk, err := v.kind(kind)
	if err != nil {
		return gvk, none, api.Target{}, fmt.Errorf("%s: %w", text, err)
	}
	mapping, err := v.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return gvk, none, api.Target{}, fmt.Errorf("%s: find the kind %s: %w", text, kind, err)
	}
	t := api.Target{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: name}
	if mapping.Scope.Name() != meta.RESTScopeNameRoot {
		t.Namespace = v.namespace
	}
	return gvk, mapping.Resource, t, nil
}

// removal is the Delete of what KIND/NAME names. It reports whether there is such a thing, as
// far as anyone who asks may see that.
func (v *surveyor) removal(ctx context.Context, text string) (change api.Change, exists bool, err error) {
	gvk, _, t, err := v.named(text)
	if err != nil {
		return api.Change{}, false, fmt.Errorf("--delete: %w", err)
	}
	_, exists, err = v.find(ctx, gvk, &t)
	return api.Change{Target: t, Type: api.Delete}, exists || err != nil, nil
}

// kind finds a kind by what people call it: a kind, a resource or its short name, with
// version and group if they are needed.
func (v *surveyor) kind(text string) (schema.GroupVersionKind, error) {
	full, group := schema.ParseResourceArg(strings.ToLower(text))
	if full != nil {
		if gvk, err := v.mapper.KindFor(*full); err == nil {
			return gvk, nil
		}
	}
	gvk, err := v.mapper.KindFor(group.WithVersion(""))
	if err == nil {
		return gvk, nil
	}
	var unknown *meta.NoResourceMatchError
	if !errors.As(err, &unknown) {
		return gvk, fmt.Errorf("find the kind %s: %w", text, err)
	}
	return gvk, fmt.Errorf("the cluster serves no kind %q; kubectl api-resources lists those that it does", text)
}

// bare is a manifest without what the API server sets, which a manifest that was read from
// a cluster has.
func bare(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(out.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	if annotations := out.GetAnnotations(); annotations != nil && len(annotations) == 0 {
		unstructured.RemoveNestedField(out.Object, "metadata", "annotations")
	}
	delete(out.Object, "status")
	return out
}

// artifactAnnotation names, by their digests, the OCI artifacts that a Transaction is made of.
const artifactAnnotation = "janus.io/artifacts"

// artifactsOf is the annotation that names the artifacts that manifests come from; nil if they
// come from none.
func artifactsOf(manifests []manifest) map[string]string {
	var names []string
	for _, m := range manifests {
		// The first of them: files may have names that look like a digest.
		at := strings.Index(m.source, "@sha256:")
		if !strings.HasPrefix(m.source, bundle.Scheme) || at < 0 {
			continue
		}
		name, _, _ := strings.Cut(m.source[at:], "/")
		if name = m.source[:at] + name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return map[string]string{artifactAnnotation: strings.Join(names, ",")}
}
