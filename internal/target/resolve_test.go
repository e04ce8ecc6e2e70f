package target

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/objectid"
)

// countingMapper knows some kinds, learns others when it is reset, and counts.
type countingMapper struct {
	meta.RESTMapper
	later  schema.GroupVersionKind // known after a reset; may be empty
	err    error                   // instead of every answer
	resets int
}

func (m *countingMapper) Reset() {
	m.resets++
	if m.later.Kind != "" {
		m.RESTMapper.(*meta.DefaultRESTMapper).Add(m.later, meta.RESTScopeNamespace)
	}
}

func (m *countingMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if m.err != nil {
		return nil, m.err
	}
	return m.RESTMapper.RESTMapping(gk, versions...)
}

func newMapper() *countingMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "example.com", Version: "v2"}}) // the one preferred
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	m.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	return &countingMapper{RESTMapper: m}
}

var widget = PlannedKind{
	GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"},
	GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, Namespaced: true,
}

func at(apiVersion, kind, namespace string) api.Target {
	return api.Target{APIVersion: apiVersion, Kind: kind, Name: "a", Namespace: namespace}
}

func TestResolve(t *testing.T) {
	away := errors.New("the server is away")
	tests := []struct {
		name    string
		spec    api.Target
		planned []PlannedKind
		mapper  func(*countingMapper)
		want    string // resource, then target
		wait    bool   // deferred
		reason  string
		says    string
		resets  int
	}{
		{name: "a namespaced kind is in the default namespace", spec: at("v1", "ConfigMap", ""), want: "configmaps ConfigMap shop/a"},
		{name: "a namespace that is named is kept", spec: at("v1", "ConfigMap", "other"), want: "configmaps ConfigMap other/a"},
		{name: "a group has its own kinds", spec: at("apps/v1", "Deployment", ""), want: "deployments Deployment shop/a"},
		{name: "a cluster-scoped kind has no namespace", spec: at("v1", "Namespace", ""), want: "namespaces Namespace a"},
		{name: "a namespace for a cluster-scoped kind is an error", spec: at("v1", "Namespace", "shop"), reason: errclass.Invalid, says: "Namespace is cluster-scoped; leave out target.namespace", resets: 1},
		{name: "a kind that was cluster-scoped when discovery was read is found by reading it once more", spec: at("example.com/v1", "Widget", "shop"),
			mapper: func(m *countingMapper) {
				m.RESTMapper.(*meta.DefaultRESTMapper).Add(widget.GVK, meta.RESTScopeRoot)
				m.later = widget.GVK
			}, want: "widgets Widget shop/a", resets: 1},
		{name: "a malformed apiVersion is an error", spec: at("a/b/c", "ConfigMap", ""), reason: errclass.Invalid, says: `apiVersion "a/b/c" is malformed`},
		{name: "a kind installed a moment ago is found by reading discovery once more", spec: at("example.com/v1", "Widget", ""),
			mapper: func(m *countingMapper) { m.later = widget.GVK }, want: "widgets Widget shop/a", resets: 1},
		{name: "a kind that is not served is an error after one more look", spec: at("example.com/v1", "Widget", ""),
			reason: errclass.KindNotFound, says: "the cluster serves no kind Widget in example.com/v1; see `kubectl api-resources`", resets: 1},
		{name: "a version that is not served is an error", spec: at("apps/v9", "Deployment", ""), reason: errclass.KindNotFound, says: "Deployment in apps/v9", resets: 1},
		{name: "a kind that an earlier change makes is waited for", spec: at("example.com/v1", "Widget", ""),
			planned: []PlannedKind{widget}, want: "widgets Widget shop/a", wait: true, resets: 1},
		{name: "another version of it is not", spec: at("example.com/v2", "Widget", ""),
			planned: []PlannedKind{widget}, reason: errclass.KindNotFound, says: "no kind Widget in example.com/v2", resets: 1},
		{name: "a kind that is served already is not waited for", spec: at("example.com/v1", "Widget", ""),
			planned: []PlannedKind{widget}, mapper: func(m *countingMapper) { m.later = widget.GVK }, want: "widgets Widget shop/a", resets: 1},
		{name: "a server that is away proves nothing about a kind", spec: at("v1", "ConfigMap", ""),
			mapper: func(m *countingMapper) { m.err = away }, reason: errclass.ServerUnavailable, says: "the server is away"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMapper()
			if tt.mapper != nil {
				tt.mapper(m)
			}
			ref, err := NewResolver(m, nil).Resolve(tt.spec, "shop", tt.planned)
			assert.Equal(t, tt.resets, m.resets, "resets")
			if tt.reason != "" {
				require.ErrorContains(t, err, tt.says)
				assert.Equal(t, tt.reason, errclass.ReasonOf(err))
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, ref.GVR.Resource+" "+ref.String())
			assert.Equal(t, tt.wait, ref.Deferred)
		})
	}
}

// An outage while a kind is planned must not be taken for a kind that is not there yet.
func TestAPlannedKindDoesNotHideAServerThatIsAway(t *testing.T) {
	m := newMapper()
	m.err = errors.New("the server is away")
	_, err := NewResolver(m, nil).Resolve(at("example.com/v1", "Widget", ""), "shop", []PlannedKind{widget})
	require.Error(t, err)
	assert.Equal(t, errclass.Unknown, errclass.ClassOf(err))
}

func TestATargetIsFoundByAnotherVersionOfItsKind(t *testing.T) {
	at := func(version string) Ref {
		gv := schema.GroupVersion{Group: "example.com", Version: version}
		return Ref{GVK: gv.WithKind("Widget"), GVR: gv.WithResource("widgets"), Namespace: "shop", Name: "a"}
	}
	empty := &countingMapper{RESTMapper: meta.NewDefaultRESTMapper(nil)}
	one := newMapper()
	one.RESTMapper.(*meta.DefaultRESTMapper).Add(at("v2").GVK, meta.RESTScopeNamespace)
	both := newMapper()
	both.later = at("v1").GVK
	both.RESTMapper.(*meta.DefaultRESTMapper).Add(at("v2").GVK, meta.RESTScopeNamespace)
	away := newMapper()
	away.err = errors.New("the server is away")
	for _, tt := range []struct {
		name   string
		mapper *countingMapper
		want   Ref
		served bool
		fails  bool
	}{
		{name: "one that is served", mapper: one, want: at("v2"), served: true},
		{name: "its own, if that is served after all", mapper: both, want: at("v1"), served: true},
		{name: "none is served", mapper: newMapper()},
		{name: "nothing is served at all, which cannot be", mapper: empty, fails: true},
		{name: "the server is away", mapper: away, fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, served, err := NewResolver(tt.mapper, nil).Elsewhere(at("v1"))
			if tt.fails {
				require.Error(t, err)
				assert.Equal(t, errclass.Unknown, errclass.ClassOf(err))
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.served, served)
			assert.Equal(t, tt.want, got)
			assert.Equal(t, 1, tt.mapper.resets)
		})
	}
}

func TestAnOwnerIsInTheNamespaceOfWhatItOwnsOrInNone(t *testing.T) {
	r := NewResolver(newMapper(), nil)
	ref, err := r.ResolveOwner(metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, "shop")
	require.NoError(t, err)
	assert.Equal(t, "Deployment shop/web", ref.String())
	ref, err = r.ResolveOwner(metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "x"}, "shop")
	require.NoError(t, err)
	assert.Equal(t, "Namespace x", ref.String())
}

func TestTheIdentityOfATargetHasNoVersion(t *testing.T) {
	at := func(group, version string) objectid.ID {
		gv := schema.GroupVersion{Group: group, Version: version}
		return Ref{GVK: gv.WithKind("Deployment"), GVR: gv.WithResource("deployments"), Namespace: "shop", Name: "web"}.ID()
	}
	assert.Equal(t, at("apps", "v1"), at("apps", "v1beta1"))
	assert.NotEqual(t, at("apps", "v1"), at("other.example.com", "v1"))
}

func TestPlannedKinds(t *testing.T) {
	crd := func(change func(spec map[string]any)) map[string]any {
		spec := map[string]any{
			"group": "example.com", "scope": "Namespaced", "names": map[string]any{"kind": "Widget", "plural": "widgets"},
			"versions": []any{map[string]any{"name": "v1", "served": true}},
		}
		if change != nil {
			change(spec)
		}
		return map[string]any{"spec": spec}
	}
	cluster := widget
	cluster.Namespaced = false
	v2 := PlannedKind{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Widget"},
		GVR: schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"}, Namespaced: true}
	for _, tt := range []struct {
		name    string
		content map[string]any
		want    []PlannedKind
	}{
		{"a CRD defines its kind", crd(nil), []PlannedKind{widget}},
		{"in each version that is served", crd(func(s map[string]any) {
			s["versions"] = append(s["versions"].([]any), map[string]any{"name": "v2", "served": true}, map[string]any{"name": "v3", "served": false}, map[string]any{"name": "v4"})
		}), []PlannedKind{widget, v2}},
		{"for the whole cluster, if it says so", crd(func(s map[string]any) { s["scope"] = "Cluster" }), []PlannedKind{cluster}},
		{"no content defines nothing", nil, nil},
		{"a CRD without a group defines nothing", crd(func(s map[string]any) { delete(s, "group") }), nil},
		{"a CRD without a plural defines nothing", crd(func(s map[string]any) { s["names"] = map[string]any{"kind": "Widget"} }), nil},
		{"a CRD without a kind defines nothing", crd(func(s map[string]any) { s["names"] = map[string]any{"plural": "widgets"} }), nil},
		{"versions that are no list define nothing", crd(func(s map[string]any) { s["versions"] = "v1" }), nil},
		{"a version that is no object defines nothing", crd(func(s map[string]any) { s["versions"] = []any{"v1"} }), nil},
		{"a spec that is no object defines nothing", map[string]any{"spec": "x"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, PlannedKinds(tt.content)) })
	}
}
