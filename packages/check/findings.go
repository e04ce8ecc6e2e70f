package check

import (
	"cmp"
	"slices"
)

// Reason is the kind of a finding.
type Reason string

// The reasons. Those of dependencies, objects and schemas have the names that conditions of
// packages give them.
const (
	MissingDependency  Reason = "MissingDependency"
	VersionConflict    Reason = "VersionConflict"
	CircularDependency Reason = "CircularDependency"
	CRDConflict        Reason = "CRDConflict"
	SchemaIncompatible Reason = "SchemaIncompatible"

	// PackageManagerMissing: there is no Crossplane.
	PackageManagerMissing Reason = "PackageManagerMissing"
	// PackageManagerBlocked: Crossplane resolves no dependencies now.
	PackageManagerBlocked Reason = "PackageManagerBlocked"
	// CrossplaneIncompatible: a package does not work with this version of Crossplane.
	CrossplaneIncompatible Reason = "CrossplaneIncompatible"
	// Unsupported: a setting of a package or of Crossplane would make the change end otherwise
	// than planned.
	Unsupported Reason = "Unsupported"
	// NotFound: there is no such package.
	NotFound Reason = "NotFound"
	// NameTaken: another package has the name.
	NameTaken Reason = "NameTaken"
	// DuplicateSource: a package is installed twice.
	DuplicateSource Reason = "DuplicateSource"
	// KindMismatch: an image holds another kind of package.
	KindMismatch Reason = "KindMismatch"
	// HasDependents: other packages need one that would go.
	HasDependents Reason = "HasDependents"
	// DataLoss: custom resources would go.
	DataLoss Reason = "DataLoss"
	// NotEquivalent: a package lacks what that in whose place it comes has.
	NotEquivalent Reason = "NotEquivalent"
	// ImageUnusable: an image cannot be read, or is no package.
	ImageUnusable Reason = "ImageUnusable"
	// NothingToDo: all is as it is to be.
	NothingToDo Reason = "NothingToDo"
	// Outage and Unverified are warnings, and so is Downgrade until it is judged.
	Outage     Reason = "Outage"
	Downgrade  Reason = "Downgrade"
	Unverified Reason = "Unverified"
)

// Finding is something that was found.
type Finding struct {
	Reason Reason
	// Message is a sentence that begins with what it is about.
	Message string
	// Warning says that it does not stand in the way.
	Warning bool
	// Temporary says that it may be otherwise later, although nobody changes anything.
	Temporary bool
}

// Findings are all of them.
type Findings []Finding

// Errors are those that stand in the way.
func (f Findings) Errors() Findings {
	return slices.DeleteFunc(slices.Clone(f), func(one Finding) bool { return one.Warning })
}

// Allowed is what may pass that is refused otherwise.
type Allowed struct {
	// Downgrade lets packages go back to an older version.
	Downgrade bool
	// SchemaNarrowing lets schemas harm custom resources.
	SchemaNarrowing bool
	// DataLoss lets custom resources go with their definition.
	DataLoss bool
}

// Judged has what is allowed as warnings, and a downgrade that is not as an error.
func (f Findings) Judged(by Allowed) Findings {
	allowed := map[Reason]bool{Downgrade: by.Downgrade, SchemaIncompatible: by.SchemaNarrowing, DataLoss: by.DataLoss}
	out := slices.Clone(f)
	for i := range out {
		switch may, ruled := allowed[out[i].Reason]; {
		case ruled && may:
			out[i].Warning = true
		case out[i].Reason == Downgrade:
			out[i].Warning = false
		}
	}
	return out.Sorted()
}

// Sorted has errors before warnings, each once, and else the order in which they were found.
func (f Findings) Sorted() Findings {
	var out Findings
	for _, one := range f {
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	rank := func(one Finding) int {
		if one.Warning {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}
