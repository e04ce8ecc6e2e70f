package packages_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	kubetesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/expression"
	"janus.io/janus/packages"
	"janus.io/janus/packages/change"
	"janus.io/janus/packages/check"
	"janus.io/janus/packages/compile"
	"janus.io/janus/packages/image"
	"janus.io/janus/packages/installed"
	"janus.io/janus/test/xpkg"
)

var update = flag.Bool("update", false, "write the golden files")

// kinds are those that a cluster of these tests serves.
var kinds = map[schema.GroupVersionResource]string{
	{Group: "pkg.crossplane.io", Version: "v1beta1", Resource: "locks"}:                                        "LockList",
	{Group: "pkg.crossplane.io", Version: "v1beta1", Resource: "imageconfigs"}:                                 "ImageConfigList",
	{Group: "pkg.crossplane.io", Version: "v1", Resource: "providers"}:                                         "ProviderList",
	{Group: "pkg.crossplane.io", Version: "v1", Resource: "providerrevisions"}:                                 "ProviderRevisionList",
	{Group: "pkg.crossplane.io", Version: "v1", Resource: "configurations"}:                                    "ConfigurationList",
	{Group: "pkg.crossplane.io", Version: "v1", Resource: "configurationrevisions"}:                            "ConfigurationRevisionList",
	{Group: "pkg.crossplane.io", Version: "v1", Resource: "functions"}:                                         "FunctionList",
	{Group: "pkg.crossplane.io", Version: "v1", Resource: "functionrevisions"}:                                 "FunctionRevisionList",
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}:                      "CustomResourceDefinitionList",
	{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Resource: "managedresourcedefinitions"}:        "ManagedResourceDefinitionList",
	{Group: "apiextensions.crossplane.io", Version: "v1", Resource: "compositeresourcedefinitions"}:            "CompositeResourceDefinitionList",
	{Group: "apiextensions.crossplane.io", Version: "v1", Resource: "compositions"}:                            "CompositionList",
	{Group: "ops.crossplane.io", Version: "v1alpha1", Resource: "cronoperations"}:                              "CronOperationList",
	{Group: "ops.crossplane.io", Version: "v1alpha1", Resource: "watchoperations"}:                             "WatchOperationList",
	{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Resource: "managedresourceactivationpolicies"}: "ManagedResourceActivationPolicyList",
	{Group: "ops.crossplane.io", Version: "v1alpha1", Resource: "operations"}:                                  "OperationList",
	{Group: "acme.io", Version: "v1", Resource: "buckets"}:                                                     "BucketList",
	{Group: "acme.io", Version: "v1", Resource: "configs"}:                                                     "ConfigList",
	{Group: "acme.io", Version: "v1", Resource: "xshops"}:                                                      "XShopList",
	{Group: "acme.io", Version: "v1", Resource: "shops"}:                                                       "ShopList",
	{Group: "apps", Version: "v1", Resource: "deployments"}:                                                    "DeploymentList",
}

// story is a cluster, images, and what is asked for.
type story struct {
	cluster dynamic.Interface
	images  map[string]string // streams by their references
}

// Tags, Digest and Fetch are those of a registry.
func (s story) Tags(_ context.Context, location string) ([]string, error) {
	var out []string
	for ref := range s.images {
		if source, tag, ok := strings.Cut(ref, ":v"); ok && source == location {
			out = append(out, "v"+tag)
		}
	}
	slices.Sort(out)
	return out, nil
}

func (s story) Digest(_ context.Context, location, tag string) (string, error) {
	stream, ok := s.images[location+":"+tag]
	if !ok {
		return "", &image.Error{Image: location + ":" + tag, Reason: "NotFound"}
	}
	return xpkg.Digest([]byte(stream)), nil
}

func (s story) Fetch(_ context.Context, location, digest string) (*image.Package, error) {
	for ref, stream := range s.images {
		if strings.HasPrefix(ref, location+":") && xpkg.Digest([]byte(stream)) == digest {
			p, err := image.Parse([]byte(stream))
			if err != nil {
				return nil, &image.Error{Image: location + "@" + digest, Reason: image.InvalidPackage}
			}
			return p, nil
		}
	}
	return nil, errors.New("no such image")
}

// read reads a story out of the files of an archive.
func read(t *testing.T, a *txtar.Archive) (story, packages.Request) {
	t.Helper()
	s := story{images: map[string]string{}}
	var objects []runtime.Object
	var request packages.Request
	for _, f := range a.Files {
		text := string(f.Data)
		switch ref, isImage := strings.CutPrefix(f.Name, "image/"); {
		case isImage:
			s.images[ref] = text
		case f.Name == "cluster.yaml":
			documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
			for {
				one, err := documents.Read()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				u := &unstructured.Unstructured{}
				require.NoError(t, yaml.Unmarshal(one, &u.Object))
				objects = append(objects, u)
			}
		case f.Name == "request":
			words := strings.Fields(text)
			request.Type = map[string]change.Type{"install": change.Install, "delete": change.Delete, "replace": change.Replace}[words[0]]
			require.NotEmpty(t, request.Type)
			request.Targets = words[1:]
			if request.Type != change.Delete {
				var err error
				request.Image, err = image.ParseReference(words[len(words)-1])
				require.NoError(t, err)
				request.Targets = words[1 : len(words)-1]
			}
		}
	}
	s.cluster = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
	return s, request
}

var options = compile.Options{
	Namespace: "shop", ServiceAccount: "installer", LockNamespace: packages.DefaultNamespace, PackageTimeout: "5m0s", Timeout: "30m0s",
}

// planned returns the findings and the Transaction of a story, as golden files have them.
func planned(t *testing.T, s story, request packages.Request) (findings, transaction string) {
	t.Helper()
	planner := packages.Planner{
		Cluster: s.cluster, Crossplane: installed.Crossplane{Version: "v2.1.3"},
		Registries: func(context.Context, []string) (packages.Registry, error) { return s, nil },
	}
	plan, err := planner.Plan(t.Context(), request)
	require.NoError(t, err)
	for _, f := range plan.Findings {
		kind := "error"
		if f.Warning {
			kind = "warning"
		}
		findings += fmt.Sprintf("%s: %s: %s\n", kind, f.Reason, f.Message)
	}
	if len(plan.Findings.Errors()) > 0 || len(plan.Change.Steps) == 0 {
		return findings, ""
	}
	made, err := compile.Transaction(plan.Change, options)
	require.NoError(t, err)
	compiles(t, made)
	again, err := compile.Transaction(plan.Change, options)
	require.NoError(t, err)
	require.Equal(t, made, again, "the same change gives the same Transaction")
	text, err := yaml.Marshal(made.Spec.Changes)
	require.NoError(t, err)
	return findings, "# " + made.Name + "\n" + string(text)
}

// compiles checks all expressions, and their length.
func compiles(t *testing.T, made *api.Transaction) {
	t.Helper()
	check := func(text string, compile func(string) (*expression.Expression, error)) {
		if text == "" {
			return
		}
		_, err := compile(text)
		require.NoError(t, err, text)
		require.LessOrEqual(t, len(text), 1024)
	}
	for _, c := range made.Spec.Changes {
		require.LessOrEqual(t, len(c.Name), 63)
		check(c.When, expression.Compile)
		if c.ReadyWhen != nil {
			check(c.ReadyWhen.Expression, expression.Compile)
		}
		if c.FailWhen != nil {
			check(c.FailWhen.Expression, expression.Compile)
			check(c.FailWhen.MessageExpression, expression.CompileText)
		}
		if c.Rollback != nil {
			check(c.Rollback.ReadyWhen.Expression, expression.Compile)
		}
	}
}

func TestPlansAreThoseOfTheGoldenFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			require.NoError(t, err)
			s, request := read(t, a)
			findings, transaction := planned(t, s, request)
			golden := map[string]string{"findings": findings, "transaction.yaml": transaction}
			if *update {
				a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool { return f.Name == "findings" || f.Name == "transaction.yaml" })
				for _, name := range []string{"findings", "transaction.yaml"} {
					if golden[name] != "" {
						a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(golden[name])})
					}
				}
				require.NoError(t, os.WriteFile(file, txtar.Format(a), 0o600))
				return
			}
			want := map[string]string{"findings": "", "transaction.yaml": ""}
			for _, f := range a.Files {
				if _, ok := want[f.Name]; ok {
					want[f.Name] = string(f.Data)
				}
			}
			for name := range golden {
				assert.Equal(t, want[name], golden[name], name)
			}
		})
	}
}

// planning plans the story of a file, with what a test changes about it.
func planning(t *testing.T, file string, with func(*packages.Planner, *packages.Request)) packages.Plan {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	s, request := read(t, a)
	planner := packages.Planner{
		Cluster: s.cluster, Crossplane: installed.Crossplane{Version: "v2.1.3"},
		Registries: func(context.Context, []string) (packages.Registry, error) { return s, nil },
	}
	with(&planner, &request)
	plan, err := planner.Plan(t.Context(), request)
	require.NoError(t, err)
	return plan
}

// What is read of images for one plan is bounded, however many there are.
func TestAPlanReadsNoMoreThanItMay(t *testing.T) {
	plan := planning(t, "install.txtar", func(p *packages.Planner, _ *packages.Request) { p.MaxBytes = 1 })
	require.Len(t, plan.Findings.Errors(), 1)
	assert.Contains(t, plan.Findings[0].Message, "take more than 1 bytes together")
	plan = planning(t, "install.txtar", func(p *packages.Planner, _ *packages.Request) { p.MaxBytes = 1 << 20 })
	assert.Empty(t, plan.Findings.Errors())
}

// An API server that denies a kind that it has served, as one that is about to start may, has not said that there
// is nothing of it.
func TestWhatCannotBeListedIsNotTakenForNothing(t *testing.T) {
	deny := func(p *packages.Planner) {
		cluster, ok := p.Cluster.(*fake.FakeDynamicClient)
		require.True(t, ok)
		cluster.PrependReactor("list", "buckets", func(kubetesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewNotFound(schema.GroupResource{Group: "acme.io", Resource: "buckets"}, "")
		})
	}
	plan := planning(t, "delete-data.txtar", func(p *packages.Planner, _ *packages.Request) { deny(p) })
	assert.Empty(t, plan.Findings.Errors(), "the definition was never served")

	plan = planning(t, "delete-data.txtar", func(p *packages.Planner, _ *packages.Request) {
		deny(p)
		definitions := p.Cluster.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		u, err := definitions.Get(t.Context(), "buckets.acme.io", metav1.GetOptions{})
		require.NoError(t, err)
		require.NoError(t, unstructured.SetNestedSlice(u.Object, []any{map[string]any{"type": "Established", "status": "True"}}, "status", "conditions"))
		_, err = definitions.Update(t.Context(), u, metav1.UpdateOptions{})
		require.NoError(t, err)
	})
	require.Len(t, plan.Findings.Errors(), 1)
	assert.Contains(t, plan.Findings[0].Message, "buckets.acme.io goes with xpkg.acme.io/acme/bucket, and its custom resources cannot be read: ")
}

// Who may not list what functions run in is told so, and is not stopped.
func TestWhereAFunctionRunsMayNotBeKnown(t *testing.T) {
	plan := planning(t, "delete-function.txtar", func(p *packages.Planner, _ *packages.Request) {
		cluster, ok := p.Cluster.(*fake.FakeDynamicClient)
		require.True(t, ok)
		cluster.PrependReactor("list", "compositions", func(kubetesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "apiextensions.crossplane.io", Resource: "compositions"}, "", errors.New("no right"))
		})
		cluster.PrependReactor("list", "cronoperations", func(kubetesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewNotFound(schema.GroupResource{Group: "ops.crossplane.io", Resource: "cronoperations"}, "")
		})
	})
	assert.Empty(t, plan.Findings.Errors())
	require.Len(t, plan.Findings, 1)
	assert.Equal(t, check.Unverified, plan.Findings[0].Reason)
	assert.Contains(t, plan.Findings[0].Message, "Function acme-run: whether anything runs it is not known: list compositions.apiextensions.crossplane.io: ")
}

// Nor does it stop anyone that what a composition composes cannot be listed.
func TestWhatACompositionComposesMayNotBeKnown(t *testing.T) {
	for _, resource := range []string{"compositeresourcedefinitions", "xshops"} {
		plan := planning(t, "delete-composition.txtar", func(p *packages.Planner, _ *packages.Request) {
			cluster, ok := p.Cluster.(*fake.FakeDynamicClient)
			require.True(t, ok)
			cluster.PrependReactor("list", resource, func(kubetesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "acme.io", Resource: resource}, "", errors.New("no right"))
			})
		})
		assert.Empty(t, plan.Findings.Errors())
		require.Len(t, plan.Findings, 1, resource)
		assert.Equal(t, check.Unverified, plan.Findings[0].Reason)
		assert.Contains(t, plan.Findings[0].Message, "Composition malls goes with xpkg.acme.io/acme/malls: whether it composes anything is not known: list "+resource)
	}
}

// A package that is installed at the version is changed if it lacks what it is to have.
func TestAPackageGetsWhatItLacks(t *testing.T) {
	wish := func(labels map[string]string, spec map[string]any) packages.Plan {
		return planning(t, "nothing.txtar", func(_ *packages.Planner, r *packages.Request) { r.Wish = change.Wish{Labels: labels, Spec: spec} })
	}
	assert.Empty(t, wish(nil, nil).Change.Steps)
	plan := wish(map[string]string{"team": "a"}, map[string]any{"revisionHistoryLimit": int64(3)})
	require.Empty(t, plan.Findings.Errors())
	require.Len(t, plan.Change.Steps, 1)
	made, err := compile.Transaction(plan.Change, options)
	require.NoError(t, err)
	text, err := yaml.Marshal(made.Spec.Changes)
	require.NoError(t, err)
	assert.Contains(t, string(text), "revisionHistoryLimit: 3")
	assert.Contains(t, string(text), "team: a")
	there := *plan.Change.Steps[0].Existing
	assert.Equal(t, plan.Change.Steps[0].From, plan.Change.Steps[0].To)
	there.Labels, there.Spec = map[string]string{"team": "a", "other": "b"}, map[string]any{"revisionHistoryLimit": int64(3), "package": "p"}
	assert.True(t, plan.Change.Steps[0].Wish.Met(there))
	there.Spec["revisionHistoryLimit"] = int64(2)
	assert.False(t, plan.Change.Steps[0].Wish.Met(there))
}
