package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// said is what govulncheck says: of one vulnerability that is only required, one that is
// imported, one that is called, and one of Go itself.
const said = `
{"config": {"scanner_name": "govulncheck"}}
{"osv": {"id": "GO-1", "aliases": ["CVE-1"]}}
{"osv": {"id": "GO-2"}}
{"finding": {"osv": "GO-3", "fixed_version": "v1.2.0", "trace": [{"module": "example.com/c", "version": "v1.1.0"}]}}
{"finding": {"osv": "GO-3", "fixed_version": "v1.2.0", "trace": [{"module": "example.com/c", "version": "v1.1.0", "package": "example.com/c", "function": "Do"}, {"module": "janus.io/janus"}]}}
{"finding": {"osv": "GO-2", "trace": [{"module": "example.com/b", "version": "v0.2.0", "package": "example.com/b"}]}}
{"finding": {"osv": "GO-1", "trace": [{"module": "example.com/a", "version": "v0.1.0"}]}}
{"finding": {"osv": "GO-4", "fixed_version": "v1.26.9", "trace": [{"module": "stdlib", "version": "v1.26.8", "package": "net/http", "function": "Get"}]}}
`

func findings(t *testing.T) (modules, std []finding) {
	t.Helper()
	all, err := read(strings.NewReader(said))
	require.NoError(t, err)
	return divide(all)
}

func TestWhatIsFoundIsRead(t *testing.T) {
	modules, std := findings(t)
	assert.Equal(t, []finding{
		{id: "GO-1", module: "example.com/a", version: "v0.1.0", aliases: []string{"CVE-1"}},
		{id: "GO-2", module: "example.com/b", version: "v0.2.0", imported: true},
		{id: "GO-3", module: "example.com/c", version: "v1.1.0", fixed: "v1.2.0", imported: true, called: true},
	}, modules)
	require.ErrorContains(t, newerGo(std), "Go 1.26.8: 1 known vulnerabilities in functions that may be called")
	require.ErrorContains(t, newerGo(std), "GO-4 (fixed in 1.26.9)")
	require.NoError(t, newerGo(nil))
	_, err := read(strings.NewReader("no output"))
	assert.Error(t, err)
}

func TestOnlyWhatNeedsNoJudgementIsWritten(t *testing.T) {
	modules, _ := findings(t)
	d := document{}.update(modules)
	require.Len(t, d.Statements, 2)
	assert.Equal(t, statement{
		Vulnerability: vulnerability{ID: "https://pkg.go.dev/vuln/GO-1", Name: "GO-1", Aliases: []string{"CVE-1"}},
		Products:      []product{{ID: purl, Subcomponents: []component{{ID: "pkg:golang/example.com/a@v0.1.0"}}}},
		Status:        "not_affected", Justification: "vulnerable_code_not_present",
	}, d.Statements[0])
	assert.Equal(t, "vulnerable_code_not_in_execute_path", d.Statements[1].Justification)
	err := d.check(modules)
	require.ErrorContains(t, err, "GO-3 in example.com/c v1.1.0: nothing is said about it (called: true)")

	path := filepath.Join(t.TempDir(), "vex.json")
	require.NoError(t, d.save(path))
	again, err := load(path)
	require.NoError(t, err)
	assert.Equal(t, d, again)
}

// TestEachStatementHasToBeTrue begins with statements that are, and changes the last one.
func TestEachStatementHasToBeTrue(t *testing.T) {
	modules, _ := findings(t)
	called := modules[2].statement()
	for name, c := range map[string]struct {
		change func(d *document)
		says   string
	}{
		"called, and a reason is given":   {func(d *document) { d.last().ImpactStatement = "Only tests call it." }, ""},
		"called, and done about":          {func(d *document) { d.last().Status, d.last().ActionStatement = "affected", "Upgrade." }, ""},
		"called, and no reason":           {func(*document) {}, "the statement does not say why that does no harm"},
		"called, and said not to be":      {func(d *document) { d.last().ImpactStatement, d.last().Justification = "No.", notCalled }, notCalled + " is not so"},
		"called, and nothing done":        {func(d *document) { d.last().Status = "under_investigation" }, "does not say what is done about it"},
		"no status":                       {func(d *document) { d.last().Status = "fine" }, `"fine" is no status`},
		"imported, and said not to be":    {func(d *document) { d.Statements[1].Justification = notThere }, notThere + " is not so"},
		"nothing said":                    {func(d *document) { d.Statements[0].Justification = "" }, "says no reason"},
		"of another version":              {func(d *document) { d.Statements[0].Products[0].Subcomponents[0].ID += "1" }, "is not about pkg:golang/example.com/a@v0.1.0"},
		"about what is not found anymore": {func(d *document) { d.Statements[0].Vulnerability.Name = "GO-0" }, "GO-0 is not found: remove its statement"},
	} {
		t.Run(name, func(t *testing.T) {
			d := document{}.update(modules)
			called.Justification = ""
			d.Statements = append(d.Statements, called)
			c.change(&d)
			if c.says == "" {
				require.NoError(t, errors.Join(d.check(modules), d.stale(modules)))
				assert.Len(t, d.update(modules).Statements, 3, "what a person has written stays")
				return
			}
			assert.ErrorContains(t, errors.Join(d.check(modules), d.stale(modules)), c.says)
		})
	}
}

func (d *document) last() *statement { return &d.Statements[len(d.Statements)-1] }

// The document is about what the pinned copy of the data has, and reads as OpenVEX.
func TestTheDocument(t *testing.T) {
	d, err := load("janus.openvex.json")
	require.NoError(t, err)
	assert.Equal(t, "https://openvex.dev/ns/v0.2.0", d.Context)
	assert.NotEmpty(t, d.Statements)
	for _, s := range d.Statements {
		assert.NotEmpty(t, s.Vulnerability.Name)
		assert.Equal(t, purl, s.Products[0].ID)
	}
}
