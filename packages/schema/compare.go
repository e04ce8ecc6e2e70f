package schema

import (
	"fmt"
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Difference is one between two definitions.
type Difference struct {
	// Version is that of the kind; empty for what is the same for all.
	Version string
	// Path is that of a field, such as spec.forProvider.region; empty for the kind itself.
	Path string
	// Text is a clause about it, such as: is required now.
	Text string
	// Breaking says that something that was accepted or kept may not be any more.
	Breaking bool
	// Kind says that the kind itself is another: its names, its scope, or a version that was
	// served. No custom resource tells whether that is harmless.
	Kind bool
}

// String is the difference as a clause.
func (d Difference) String() string {
	where := d.Version
	if d.Path != "" {
		if where != "" {
			where += " "
		}
		where += d.Path
	}
	if where == "" {
		return d.Text
	}
	return where + " " + d.Text
}

// Compare finds what differs between two definitions of the same name.
func Compare(before, after *v1.CustomResourceDefinition) []Difference {
	c := &comparing{}
	c.kind(before, after)
	for _, old := range before.Spec.Versions {
		i := slices.IndexFunc(after.Spec.Versions, func(v v1.CustomResourceDefinitionVersion) bool { return v.Name == old.Name })
		c.version = old.Name
		switch {
		case i < 0 && slices.Contains(before.Status.StoredVersions, old.Name):
			c.of("is gone, and objects may be stored in it")
		case i < 0 && old.Served:
			c.of("is gone")
		case i < 0:
		case old.Served && !after.Spec.Versions[i].Served:
			c.of("is not served any more")
		default:
			c.versions(old, after.Spec.Versions[i])
		}
	}
	for _, v := range after.Spec.Versions {
		if !slices.ContainsFunc(before.Spec.Versions, func(o v1.CustomResourceDefinitionVersion) bool { return o.Name == v.Name }) {
			c.version = v.Name
			c.add("", false, "is new")
		}
	}
	return c.found
}

type comparing struct {
	version string
	found   []Difference
}

func (c *comparing) add(path string, breaking bool, format string, args ...any) {
	c.found = append(c.found, Difference{Version: c.version, Path: path, Breaking: breaking, Text: fmt.Sprintf(format, args...)})
}

// of adds a difference of the kind itself.
func (c *comparing) of(format string, args ...any) {
	c.found = append(c.found, Difference{Version: c.version, Breaking: true, Kind: true, Text: fmt.Sprintf(format, args...)})
}

func (c *comparing) kind(before, after *v1.CustomResourceDefinition) {
	a, b := before.Spec, after.Spec
	if a.Group != b.Group {
		c.of("the group is %s, and was %s", b.Group, a.Group)
	}
	if a.Scope != b.Scope {
		c.of("the scope is %s, and was %s", b.Scope, a.Scope)
	}
	if a.Names.Kind != b.Names.Kind {
		c.of("the kind is %s, and was %s", b.Names.Kind, a.Names.Kind)
	}
	if a.Names.Plural != b.Names.Plural {
		c.of("the plural is %s, and was %s", b.Names.Plural, a.Names.Plural)
	}
	if a.PreserveUnknownFields && !b.PreserveUnknownFields {
		c.add("", true, "unknown fields are dropped now")
	}
}

func (c *comparing) versions(before, after v1.CustomResourceDefinitionVersion) {
	if !before.Storage && after.Storage {
		c.add("", false, "is the version that is stored now")
	}
	if before.Subresources != nil && before.Subresources.Status != nil && (after.Subresources == nil || after.Subresources.Status == nil) {
		c.add("", true, "has no subresource status any more")
	}
	if (before.Subresources == nil || before.Subresources.Status == nil) && after.Subresources != nil && after.Subresources.Status != nil {
		c.add("", false, "has a subresource status now")
	}
	if after.Schema == nil || after.Schema.OpenAPIV3Schema == nil {
		return
	}
	if before.Schema == nil || before.Schema.OpenAPIV3Schema == nil {
		c.add("", true, "has a schema now")
		return
	}
	c.schemas("", before.Schema.OpenAPIV3Schema, after.Schema.OpenAPIV3Schema)
}
