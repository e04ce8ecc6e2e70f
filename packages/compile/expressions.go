package compile

import (
	"strconv"
	"strings"
)

// quoted is a text as CEL has it.
func quoted(text string) string { return strconv.Quote(text) }

// condition holds if a condition says so of the generation that there is now.
func condition(kind string) string {
	return `object.status.conditions.exists(c, c.type == ` + quoted(kind) +
		` && c.status == "True" && c.observedGeneration == object.metadata.generation)`
}

// healthy holds if a package says that it is installed and healthy, of this revision and of
// what its spec says now.
func healthy(revision string) string {
	return strings.Join([]string{resolved(revision), condition("Installed"), condition("Healthy")}, " && ")
}

// resolved holds if a package has the revision of its image.
func resolved(revision string) string {
	return `object.status.currentIdentifier == object.spec.package && object.status.currentRevision == ` + quoted(revision)
}

// staged holds if a package has read its image and has an inactive revision.
func staged(revision string) string {
	return strings.Join([]string{resolved(revision), condition("Healthy")}, " && ")
}

// running holds if a revision is active and healthy, with what it runs if it runs anything.
func running(runtime bool) string {
	parts := []string{`object.spec.desiredState == "Active"`, condition("RevisionHealthy")}
	if runtime {
		parts = append(parts, condition("RuntimeHealthy"))
	}
	return strings.Join(parts, " && ")
}

// released holds if a revision controls its objects no more.
func released() string {
	return `object.spec.desiredState == "Inactive" && ` + condition("RevisionHealthy")
}

// paused holds if Crossplane has seen that it is to leave a package alone.
const paused = `object.status.conditions.exists(c, c.type == "Synced" && c.reason == "ReconcilePaused")`

// lasting are parts of those messages of Crossplane about a revision that do not get better by
// waiting: what they name was found in the image or in the cluster, and not on the way.
var lasting = []string{
	"is already controlled by", "incompatible dependencies", "is incompatible with constraint", "incompatible Crossplane version",
	"cannot parse package contents", "linting package contents failed", "package is invalid", "invalid package",
	"multiple meta types", "is invalid:", "improper constraint",
}

// failing picks the condition of a revision that says why it cannot become healthy. That it
// waits for one before it is no such reason.
func failing(before []string) string {
	var parts []string
	for _, text := range lasting {
		parts = append(parts, `c.message.contains(`+quoted(text)+`)`)
	}
	out := `c.type == "RevisionHealthy" && c.status == "False" && c.observedGeneration == object.metadata.generation && (` + strings.Join(parts, " || ") + `)`
	for _, revision := range before {
		out += ` && !c.message.contains(` + quoted(revision) + `)`
	}
	return out
}
