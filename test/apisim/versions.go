package apisim

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// versions are those of one custom kind. They differ in their schemas, and are converted
// into each other as the strategy None has it: by another apiVersion, and without the
// fields that the other version does not have.
type versions struct {
	// served are the kinds by version.
	served []*kind
	// storage is the one in which objects are stored.
	storage *kind
	// all are the versions, also those that are not served.
	all map[schema.GroupVersion]bool
}

// stores returns the kind as which objects of this one are stored.
func (k *kind) stores() *kind {
	if k.versions == nil {
		return k
	}
	return k.versions.storage
}

// siblings are the versions of the kind that are served.
func (k *kind) siblings() []*kind {
	if k.versions == nil {
		return []*kind{k}
	}
	return k.versions.served
}

// preferred is the version by which anyone who knows all kinds reads and writes this one.
func (k *kind) preferred() *kind {
	return slices.MaxFunc(k.siblings(), func(a, b *kind) int {
		return version.CompareKubeAwareVersionStrings(a.gvk.Version, b.gvk.Version)
	})
}

// knowsVersion says that the server can convert objects of this kind to a version.
func (k *kind) knowsVersion(gv schema.GroupVersion) bool {
	return gv == k.groupVersion() || k.versions != nil && k.versions.all[gv]
}

// asVersion gives an object another apiVersion, and no more.
func asVersion(obj content, gv schema.GroupVersion) content {
	out := maps.Clone(obj)
	out["apiVersion"] = gv.String()
	return out
}

// converted returns an object in the version of a kind. It does not change it.
func converted(obj content, to *kind) content {
	if text(obj, "apiVersion") == to.groupVersion().String() {
		return obj
	}
	out := runtime.DeepCopyJSON(obj)
	out["apiVersion"] = to.groupVersion().String()
	if _, err := to.shape.(*customShape).coerce(out, false); err != nil {
		panic("an object that was validated cannot be converted: " + err.Error())
	}
	return out
}

// as shows a stored object in a version of its kind. The same version is shown by the same
// value.
func (o *stored) as(k *kind) *stored {
	if o == nil || k == o.kind || k.stores() != o.kind.stores() {
		return o
	}
	base := o.base()
	if k == base.kind {
		return base
	}
	if base.shown == nil {
		base.shown = map[*kind]*stored{}
	}
	if base.shown[k] == nil {
		base.shown[k] = &stored{kind: k, content: converted(base.content, k), raw: base.raw, version: base.version, of: base}
	}
	return base.shown[k]
}

// base is the object in the version in which it is stored.
func (o *stored) base() *stored {
	if o.of != nil {
		return o.of
	}
	return o
}
