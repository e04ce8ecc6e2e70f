package progress

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/packages/change"
	"janus.io/janus/packages/check"
	"janus.io/janus/packages/image"
)

// letsPass is the field of spec.allow that lets a finding pass.
var letsPass = map[check.Reason]string{check.Downgrade: "downgrade", check.SchemaIncompatible: "schemaNarrowing", check.DataLoss: "dataLoss"}

// Judge says which findings stand in the way of a PackageTransaction, and which do not: some
// are allowed by it, and a downgrade is an error unless it is.
func Judge(p *api.PackageTransaction, found check.Findings) (errors, warnings check.Findings) {
	for _, f := range found.Judged(check.Allowed(p.Spec.Allow)) {
		if f.Warning {
			warnings = append(warnings, f)
			continue
		}
		if field, ok := letsPass[f.Reason]; ok {
			f.Message += " (spec.allow." + field + " lets it pass)"
		}
		errors = append(errors, f)
	}
	return errors, warnings
}

// Checked records what the checks have found, and reports whether the change may be made. If
// all that stands in the way may pass by itself, the attempt has failed; else all has ended.
func Checked(p *api.PackageTransaction, found check.Findings, policy Policy, now time.Time) bool {
	errors, warnings := Judge(p, found)
	if len(errors) == 0 {
		message := "Pre-flight validation completed successfully"
		if len(warnings) > 0 {
			message += "; mind: " + joined(warnings)
		}
		p.Status.RetryTime = nil
		set(p, now, api.Validated, metav1.ConditionTrue, AllValidationsPassed, message)
		set(p, now, api.Installed, metav1.ConditionUnknown, InstallationPending, "Installation is about to begin")
		set(p, now, api.Ready, metav1.ConditionUnknown, TransactionInProgress, "Transaction is currently executing")
		set(p, now, api.Synced, metav1.ConditionTrue, ReconcileSuccess, "")
		return true
	}
	p.Status.ProposedLockPackages = nil
	reason, message := string(errors[0].Reason), joined(errors)
	if slices.ContainsFunc(errors, func(f check.Finding) bool { return !f.Temporary }) {
		ended(p, now, api.Validated, reason, message)
	} else {
		failed(p, policy, now, api.Validated, reason, message)
	}
	return false
}

// Done records that nothing had to be made: all is as it is to be, or it is a dry run.
func Done(p *api.PackageTransaction, now time.Time) {
	if !p.Spec.DryRun {
		succeeded(p, now, "Everything is as it is to be")
		return
	}
	succeeded(p, now, "")
	set(p, now, api.Installed, metav1.ConditionFalse, DryRun, "Nothing was installed: spec.dryRun is set")
	set(p, now, api.Ready, metav1.ConditionTrue, DryRun, "The change was checked, and nothing stands in its way")
}

func joined(found check.Findings) string {
	var parts []string
	for _, f := range found {
		parts = append(parts, string(f.Reason)+": "+f.Message)
	}
	if len(found) == 1 {
		return found[0].Message
	}
	return strings.Join(parts, "; ")
}

// Snapshot is the package that is installed; nil for a deletion.
func Snapshot(p *api.PackageTransaction) *api.PackageSnapshot {
	switch {
	case p.Spec.Install != nil:
		return &p.Spec.Install.Package
	case p.Spec.Replace != nil:
		return &p.Spec.Replace.Package
	default:
		return nil
	}
}

// AsAsked checks that what was planned is about the package that the snapshot names.
func AsAsked(p *api.PackageTransaction, c change.Change) check.Findings {
	var out check.Findings
	wanted := Snapshot(p)
	if wanted == nil {
		return nil
	}
	fail := func(reason check.Reason, format string, args ...any) {
		out = append(out, check.Finding{Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
	there, exists := c.State.Named(image.Kind(wanted.Kind), wanted.Metadata.Name)
	if uid := wanted.Metadata.UID; uid != "" && (!exists || there.UID != uid) {
		fail(check.NotFound, "%s %s has not the uid %s: it was deleted since the snapshot was made", wanted.Kind, wanted.Metadata.Name, uid)
	}
	for _, s := range c.Steps {
		if s.Source != c.Root {
			continue
		}
		if s.Existing != nil && s.Existing.Name != wanted.Metadata.Name {
			fail(check.DuplicateSource, "%s is installed as %s %s: use that name", s.Source, s.Existing.Kind, s.Existing.Name)
		}
		if string(s.Kind) != wanted.Kind {
			fail(check.KindMismatch, "%s is a %s, and was to be a %s", s.Source, s.Kind, wanted.Kind)
		}
	}
	return out
}

// Proposed is what Crossplane's Lock has after a change.
func Proposed(c change.Change) []api.LockPackage {
	moved := map[string]change.Step{}
	for _, s := range c.Steps {
		moved[s.Source] = s
	}
	var out []api.LockPackage
	for _, l := range c.State.Lock.Packages {
		_, moves := moved[l.Source]
		if moves || c.Replaced != nil && l.Source == c.Replaced.Image.Source {
			continue
		}
		out = append(out, api.LockPackage{Name: l.Name, Source: l.Source, Version: l.Version, Dependencies: dependencies(l.Dependencies)})
	}
	for _, s := range c.Steps {
		if !s.Goes() {
			out = append(out, api.LockPackage{Name: s.Revision, Source: s.Source, Version: s.To + "@" + s.Digest, Dependencies: dependencies(s.Content.Dependencies)})
		}
	}
	return out
}

func dependencies(of []image.Dependency) []api.Dependency {
	var out []api.Dependency
	for _, d := range of {
		out = append(out, api.Dependency{Package: d.Source, Kind: string(d.Kind), Constraints: d.Range})
	}
	return out
}
