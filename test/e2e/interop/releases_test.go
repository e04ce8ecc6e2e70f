package interop

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// patches change what the tool has set, and add what nobody has.
const patches = `
revisionHistoryLimit: 1
changes:
  - {target: {apiVersion: v1, kind: ConfigMap, name: settings}, type: Patch, content: {data: {version: t, colour: red, more: yes-it-is}}}
  - target: {apiVersion: apps/v1, kind: Deployment, name: web}
    type: Patch
    content: {spec: {minReadySeconds: 3, template: {spec: {containers: [{name: web, image: "example.com/web:t", env: [{name: MODE, value: t}]}]}}}}
`

// others make an object another, and delete one: what an undo creates again has a new uid.
const others = `
revisionHistoryLimit: 1
changes:
  - {target: {apiVersion: v1, kind: ConfigMap, name: settings}, type: Update, content: {data: {version: t, other: "1"}}}
  - {target: {apiVersion: v1, kind: Service, name: web}, type: Delete}
  - target: {apiVersion: apps/v1, kind: Deployment, name: web}
    type: Patch
    content: {spec: {minReadySeconds: 3, template: {spec: {containers: [{name: web, image: "example.com/web:t"}]}}}}
`

// An event is what happens between two releases.
type event struct {
	// name is what docs/gitops.md calls it.
	name string
	// replicas says that the manifests set them.
	replicas bool
	happens  func(d *desk)
	// like is the event without a Transaction, after which the release meets the same and the
	// owners are the same; empty for an event without one.
	like string
	// but are tools that meet something else than after that, by their names.
	but map[string]string
	// ends is set where the Transaction leaves no value behind either.
	ends bool
}

const (
	nothing   = "nothing"
	patched   = "`kubectl patch` of the image"
	applied   = "`kubectl apply` of another image"
	forced    = "`kubectl apply --server-side` of another image"
	bystander = "`kubectl scale`, `rollout restart` and `annotate`"
)

var events = []event{
	{name: nothing, happens: func(*desk) {}},
	{name: patched, happens: patching},
	{name: "the same, and a Transaction that releases it", like: nothing, happens: func(d *desk) {
		patching(d)
		d.transact("txn", d.releasing("kubectl-patch"), api.PhaseCommitted)
	}},
	{name: applied, happens: applying},
	{name: forced, happens: forcing},
	{name: "`kubectl scale`, and the manifests set replicas", replicas: true, happens: command("kubectl scale deployment web --replicas=3")},
	{name: "the same, and a Transaction that releases them", replicas: true, happens: func(d *desk) {
		d.run("kubectl scale deployment web --replicas=3")
		d.transact("txn", d.releasing("kubectl"), api.PhaseCommitted)
	}},
	{name: "`kubectl rollout restart`", happens: command("kubectl rollout restart deployment web")},
	{name: bystander, happens: byStanding},
	{name: "a Transaction that commits", like: nothing, happens: func(d *desk) { d.transact("txn", patches, api.PhaseCommitted) }},
	{name: "a Transaction that is rolled back", like: nothing, ends: true, happens: func(d *desk) {
		d.transact("txn", others+fixture.RefusedAtCommit, api.PhaseRolledBack)
	}},
	{name: "a Transaction, and its undo", like: nothing, ends: true, happens: func(d *desk) {
		d.transact("txn", others, api.PhaseCommitted)
		d.transact("undo", "undoOf: {name: txn}", api.PhaseCommitted)
	}},
	{name: "a Transaction, `kubectl scale`, `rollout restart` and `annotate`", like: bystander, happens: func(d *desk) {
		d.transact("txn", patches, api.PhaseCommitted)
		byStanding(d)
	}},
	{name: "the same, and its undo", like: bystander, ends: true, happens: func(d *desk) {
		d.transact("txn", patches, api.PhaseCommitted)
		byStanding(d)
		d.transact("undo", "undoOf: {name: txn}", api.PhaseCommitted)
	}},
	{name: "`kubectl patch`, and a Transaction", like: patched, happens: thenTransact(patching)},
	{name: "`kubectl apply`, and a Transaction", like: applied, happens: thenTransact(applying), but: map[string]string{
		// The API server spares kubectl a conflict with a client-side apply of its own where each
		// value is the one that this has applied.
		"kubectl, server-side": "conflict with `kubectl-client-side-apply`",
	}},
	{name: "`kubectl apply --server-side`, and a Transaction", like: forced, happens: thenTransact(forcing)},
}

func command(text string) func(*desk) { return func(d *desk) { d.run(text) } }

func patching(d *desk) {
	d.run(`kubectl patch deployment web --type=strategic -p '{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"example.com/web:p"}]}}}}'`)
}

func applying(d *desk) {
	d.own()
	d.run("kubectl apply -f own.yaml")
}

func forcing(d *desk) {
	d.own()
	d.run("kubectl apply --server-side --force-conflicts -f own.yaml")
}

// own writes a manifest that is of no release: that of the Deployment, with another image.
func (d *desk) own() {
	d.t.Helper()
	text := manifests("1", false)
	d.write("own.yaml", strings.ReplaceAll(text[strings.LastIndex(text, "---"):], "web:1", "web:p"))
}

// thenTransact is something that kubectl does, and a Transaction that patches the same fields.
func thenTransact(happens func(*desk)) func(*desk) {
	return func(d *desk) {
		happens(d)
		d.transact("txn", patches, api.PhaseCommitted)
	}
}

func byStanding(d *desk) {
	d.run("kubectl scale deployment web --replicas=3")
	d.run("kubectl rollout restart deployment web")
	d.run("kubectl annotate deployment web reviewed=yes")
	d.run("kubectl label configmap settings reviewed=yes")
}

// seen is what the release after an event has met, by the name of the event and of the tool.
type seen struct {
	mu    sync.Mutex
	cells map[string]map[string]string
	// after are the owners after the release, as well.
	after map[string]map[string]map[string]string
}

// TestTheNextReleaseIsAsIfThereHadBeenNoTransaction has each tool release a version, lets
// something happen, and has it release the next two. What it meets is on the page.
func TestTheNextReleaseIsAsIfThereHadBeenNoTransaction(t *testing.T) {
	s := &seen{cells: map[string]map[string]string{}, after: map[string]map[string]map[string]string{}}
	for _, what := range events {
		s.cells[what.name], s.after[what.name] = map[string]string{}, map[string]map[string]string{}
	}
	t.Run("all", func(t *testing.T) {
		for _, what := range events {
			for _, by := range tools {
				t.Run(what.name+"/"+by.name, func(t *testing.T) {
					t.Parallel()
					s.meets(newDesk(t, by), what)
				})
			}
		}
	})
	for _, what := range events {
		for _, by := range tools {
			if _, ran := s.cells[what.name][by.name]; ran && what.like != "" {
				assert.Equal(t, cmp.Or(what.but[by.name], s.cells[what.like][by.name]), s.cells[what.name][by.name], "%s of %s", by.name, what.name)
				if what.but[by.name] != "" {
					continue
				}
				assert.Equal(t, s.after[what.like][by.name], s.after[what.name][by.name], "who owns what after %s of %s is as after %s", by.name, what.name, what.like)
			}
		}
	}
	for name, cell := range s.cells[nothing] {
		assert.Equal(t, "works", cell, "%s of %s", name, nothing)
	}
	if !t.Failed() {
		onThePage(t, s.table())
	}
}

// meets runs the releases around an event.
func (s *seen) meets(d *desk, what event) {
	d.t.Helper()
	d.replicas = what.replicas
	d.Refuse()
	d.Start()
	d.released("1")
	before := d.owners()
	what.happens(d)
	if what.ends {
		d.has("1")
	}
	if what.ends && what.like == nothing {
		d.unchanged()
		assert.Equal(d.t, before, d.owners(), "who owns what is as before")
	}
	cell := d.next()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cells[what.name][d.tool.name] = cell
	if cell == "works" {
		s.after[what.name][d.tool.name] = d.owners()
	}
}

var conflict = regexp.MustCompile(`conflicts? with "([^"]+)"`)

// next is what the next two releases meet.
func (d *desk) next() string {
	d.t.Helper()
	said, err := d.release("2")
	if err != nil {
		found := conflict.FindStringSubmatch(said)
		require.NotNil(d.t, found, "%s", said)
		return "conflict with `" + found[1] + "`"
	}
	d.has("2")
	d.released("3")
	return "works"
}

// table is that of the page: a row for each event, and a column for each tool.
func (s *seen) table() string {
	var b strings.Builder
	b.WriteString("| between two releases |")
	for _, by := range tools {
		b.WriteString(" " + by.name + " |")
	}
	b.WriteString("\n" + strings.Repeat("|---", len(tools)+1) + "|\n")
	for _, what := range events {
		if what.name == nothing {
			continue
		}
		b.WriteString("| " + what.name + " |")
		for _, by := range tools {
			b.WriteString(" " + s.cells[what.name][by.name] + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// onThePage compares the table with that of docs/gitops.md.
func onThePage(t *testing.T, table string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "gitops.md"))
	require.NoError(t, err)
	lines := slices.Collect(strings.Lines(string(page)))
	first := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "| between two releases |") })
	require.NotEqual(t, -1, first, "docs/gitops.md has the table:\n%s", table)
	count := strings.Count(table, "\n")
	require.LessOrEqual(t, first+count, len(lines))
	assert.Equal(t, table, strings.Join(lines[first:first+count], ""))
}
