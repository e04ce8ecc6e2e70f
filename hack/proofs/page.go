package main

import (
	"fmt"
	"strings"
	"time"
)

const introduction = `# Proofs

What proves the [guarantees](reliability.md#what-is-checked), all of it run on the same sources, for anyone who wants to
know how much has been run. [Reliability](reliability.md#how-it-is-tested) explains each of these. ` + "`make proofs`" + `
runs them in slices and writes this page.

`

const head = `| proof | what is run | passed | slices | time |
|---|---|---:|---:|---:|
`

// page tells what has passed on a version.
func page(all []proof, r record) string {
	var b strings.Builder
	b.WriteString(introduction)
	b.WriteString(head)
	var sum time.Duration
	first, last := "", ""
	for _, p := range all {
		slices, done := 0, 0
		var took time.Duration
		for _, found := range r.Results {
			if found.Proof != p.Name {
				continue
			}
			slices++
			done += found.Done
			took += time.Duration(found.Seconds) * time.Second
			if first == "" || found.Date < first {
				first = found.Date
			}
			last = max(last, found.Date)
		}
		sum += took
		_, _ = fmt.Fprintf(&b, "| %s | %s | %s %s | %d of %d | %s |\n", p.Name, p.What, thousands(done), p.Unit, slices, p.Slices, minutes(took))
	}
	_, _ = fmt.Fprintf(&b, "\nVersion `%s`, run from %s to %s on 2 cores (x86-64), %s in all. A slice in which anything fails doesn't count.\n",
		r.Version, first, last, minutes(sum))
	b.WriteString("The version is a digest of the code of the controller, the engine and all that they need, without comments; `make proofs PROOFS=-version`\nprints that of the sources you have.\n")
	return b.String()
}

// thousands writes a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// minutes writes a duration in hours and minutes.
func minutes(d time.Duration) string {
	d = d.Round(time.Minute)
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}
