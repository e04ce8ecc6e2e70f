package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"janus.io/janus/packages/image"
	"janus.io/janus/packages/installed"
)

func TestTheTreeOfPackagesTellsWhatIsWrong(t *testing.T) {
	locked := func(name string, needs ...string) installed.Locked {
		l := installed.Locked{Kind: image.Provider, Source: "acme.io/" + name, Version: "v1.0.0"}
		for i := 0; i+1 < len(needs); i += 2 {
			l.Dependencies = append(l.Dependencies, image.Dependency{Kind: image.Provider, Source: "acme.io/" + needs[i], Range: needs[i+1]})
		}
		return l
	}
	for name, c := range map[string]struct {
		packages []installed.Locked
		args     []string
		want     string
		data     string
	}{
		"all is well":     {[]installed.Locked{locked("a", "b", ">=v1.0.0"), locked("b")}, nil, "Provider acme.io/a v1.0.0\n└─ Provider acme.io/b v1.0.0 for >=v1.0.0\n", `[{"kind":"Provider","source":"acme.io/a","version":"v1.0.0","needs":[{"kind":"Provider","source":"acme.io/b","version":"v1.0.0","wanted":">=v1.0.0"}]}]`},
		"out of range":    {[]installed.Locked{locked("a", "b", ">=v2.0.0"), locked("b")}, nil, "Provider acme.io/a v1.0.0\n└─ Provider acme.io/b v1.0.0 for >=v2.0.0, which it is not\n", `[{"kind":"Provider","source":"acme.io/a","version":"v1.0.0","needs":[{"kind":"Provider","source":"acme.io/b","version":"v1.0.0","wanted":">=v2.0.0","otherThanWanted":true}]}]`},
		"missing":         {[]installed.Locked{locked("a", "b", ">=v2.0.0")}, nil, "Provider acme.io/a v1.0.0\n└─ Provider acme.io/b for >=v2.0.0 (missing)\n", `[{"kind":"Provider","source":"acme.io/a","version":"v1.0.0","needs":[{"kind":"Provider","source":"acme.io/b","wanted":">=v2.0.0","missing":true}]}]`},
		"one by its name": {[]installed.Locked{locked("a", "b", ">=v1.0.0"), locked("b")}, []string{"acme.io/b"}, "Provider acme.io/b v1.0.0\n", `[{"kind":"Provider","source":"acme.io/b","version":"v1.0.0"}]`},
		"several need one": {
			[]installed.Locked{locked("a", "b", "v1.0.0", "c", "v1.0.0"), locked("b", "c", ">=v1.0.0"), locked("c", "d", "v1.0.0"), locked("d"), locked("e", "d", "v1.0.0")}, nil,
			"Provider acme.io/a v1.0.0\n├─ Provider acme.io/b v1.0.0 for v1.0.0\n│  └─ Provider acme.io/c v1.0.0 for >=v1.0.0\n│     └─ Provider acme.io/d v1.0.0 for v1.0.0\n└─ Provider acme.io/c v1.0.0 for v1.0.0 (see above)\n" +
				"Provider acme.io/e v1.0.0\n└─ Provider acme.io/d v1.0.0 for v1.0.0\n",
			`[{"kind":"Provider","source":"acme.io/a","version":"v1.0.0","needs":[{"kind":"Provider","source":"acme.io/b","version":"v1.0.0","wanted":"v1.0.0","needs":[{"kind":"Provider","source":"acme.io/c","version":"v1.0.0","wanted":">=v1.0.0","needs":[{"kind":"Provider","source":"acme.io/d","version":"v1.0.0","wanted":"v1.0.0"}]}]},{"kind":"Provider","source":"acme.io/c","version":"v1.0.0","wanted":"v1.0.0","repeated":true}]},{"kind":"Provider","source":"acme.io/e","version":"v1.0.0","needs":[{"kind":"Provider","source":"acme.io/d","version":"v1.0.0","wanted":"v1.0.0"}]}]`,
		},
		"a cycle beside another": {
			[]installed.Locked{locked("a"), locked("b", "c", "v1.0.0"), locked("c", "b", "v1.0.0")}, nil,
			"Provider acme.io/a v1.0.0\nProvider acme.io/b v1.0.0\n└─ Provider acme.io/c v1.0.0 for v1.0.0\n   └─ Provider acme.io/b v1.0.0 for v1.0.0 (a cycle)\n",
			`[{"kind":"Provider","source":"acme.io/a","version":"v1.0.0"},{"kind":"Provider","source":"acme.io/b","version":"v1.0.0","needs":[{"kind":"Provider","source":"acme.io/c","version":"v1.0.0","wanted":"v1.0.0","needs":[{"kind":"Provider","source":"acme.io/b","version":"v1.0.0","wanted":"v1.0.0","cycle":true}]}]}]`,
		},
		"a cycle": {
			[]installed.Locked{locked("a", "b", "v1.0.0"), locked("b", "a", "v1.0.0")}, []string{"acme.io/a"},
			"Provider acme.io/a v1.0.0\n└─ Provider acme.io/b v1.0.0 for v1.0.0\n   └─ Provider acme.io/a v1.0.0 for v1.0.0 (a cycle)\n",
			`[{"kind":"Provider","source":"acme.io/a","version":"v1.0.0","needs":[{"kind":"Provider","source":"acme.io/b","version":"v1.0.0","wanted":"v1.0.0","needs":[{"kind":"Provider","source":"acme.io/a","version":"v1.0.0","wanted":"v1.0.0","cycle":true}]}]}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p := &packaging{session: newSession(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &bytes.Buffer{}})}
			require.NoError(t, p.tree(installed.State{Lock: installed.Lock{Packages: c.packages}}, c.args, ""))
			assert.Equal(t, c.want, out.String())
			out.Reset()
			require.NoError(t, p.tree(installed.State{Lock: installed.Lock{Packages: c.packages}}, c.args, "json"))
			assert.JSONEq(t, c.data, out.String())
		})
	}
	p := &packaging{session: newSession(genericiooptions.IOStreams{})}
	require.EqualError(t, p.tree(installed.State{}, []string{"none"}, ""), "package none is not in Crossplane's Lock")
}
