package main

import (
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"janus.io/janus/packages/image"
	"janus.io/janus/packages/installed"
	"janus.io/janus/packages/version"
)

func newPackageTree(s *session) *cobra.Command {
	p := &packaging{session: s}
	var out output
	cmd := &cobra.Command{
		Use: "tree [SOURCE|NAME]", Short: "Show packages with what they need, and whether that is what they ask for", Args: cobra.MaximumNArgs(1),
		Example: `  kubectl janus package tree`,
		RunE: func(cmd *cobra.Command, args []string) error {
			state, err := p.state(cmd.Context())
			if err != nil {
				return err
			}
			return p.tree(state, args, out)
		},
	}
	p.addTo(cmd)
	out.addTo(cmd)
	return cmd
}

func (p *packaging) tree(state installed.State, args []string, out output) error {
	var roots []installed.Locked
	for _, l := range state.Lock.Packages {
		needed := slices.ContainsFunc(state.Lock.Packages, func(o installed.Locked) bool {
			return slices.ContainsFunc(o.Dependencies, func(d image.Dependency) bool { return d.Source == l.Source })
		})
		named := len(args) == 1 && (args[0] == l.Source || slices.ContainsFunc(state.Sourced(l.Source), func(i installed.Package) bool { return i.Name == args[0] }))
		if named || len(args) == 0 && !needed {
			roots = append(roots, l)
		}
	}
	if len(args) == 1 && len(roots) == 0 {
		return fmt.Errorf("package %s is not in Crossplane's Lock", args[0])
	}
	list := []lockedPackage{}
	shown := map[string]bool{}
	for _, l := range roots {
		list = append(list, lockedOf(state, l, image.Dependency{}, nil, shown))
	}
	for _, l := range state.Lock.Packages {
		// What no root needs, and is needed all the same, is in a cycle, or needed by one that is.
		if len(args) == 0 && !shown[l.Source] {
			list = append(list, lockedOf(state, l, image.Dependency{}, nil, shown))
		}
	}
	if !out.text() {
		return p.printData(out, list)
	}
	for _, l := range list {
		top := l.node()
		p.print("%s", top.text)
		p.branches(top.children, "")
	}
	if len(list) == 0 {
		p.say("There are no packages.")
	}
	return nil
}

// lockedPackage is a package of the tree, with what it needs.
type lockedPackage struct {
	Kind    string `json:"kind"`
	Source  string `json:"source"`
	Version string `json:"version,omitempty"`
	// Wanted is the range of versions that the package above it asks for, and Other says that
	// this one is not in it.
	Wanted    string `json:"wanted,omitempty"`
	Other     bool   `json:"otherThanWanted,omitempty"`
	Missing   bool   `json:"missing,omitempty"`
	Unhealthy bool   `json:"unhealthy,omitempty"`
	// Cycle is set if it stands above itself; what it needs is said there.
	Cycle bool `json:"cycle,omitempty"`
	// Repeated is set if several need it, and what it needs is said at the first of these.
	Repeated bool            `json:"repeated,omitempty"`
	Needs    []lockedPackage `json:"needs,omitempty"`
}

// node is what is said of it, and of what it needs.
func (l lockedPackage) node() node {
	n := node{text: l.Kind + " " + l.Source + after(" ", l.Version) + after(" for ", l.Wanted)}
	for _, one := range []struct {
		so   bool
		text string
	}{{l.Other, ", which it is not"}, {l.Missing, " (missing)"}, {l.Unhealthy, " (unhealthy)"}, {l.Cycle, " (a cycle)"}, {l.Repeated, " (see above)"}} {
		if one.so {
			n.text += one.text
		}
	}
	for _, needed := range l.Needs {
		n.children = append(n.children, needed.node())
	}
	return n
}

// lockedOf is a package with what it needs, below those of a path. What is shown already is not shown
// again with what it needs: there may be many ways to it.
func lockedOf(state installed.State, l installed.Locked, as image.Dependency, path []string, shown map[string]bool) lockedPackage {
	out := lockedPackage{Kind: string(l.Kind), Source: l.Source, Version: l.Version, Wanted: as.Range, Cycle: slices.Contains(path, l.Source)}
	if as.Range != "" {
		r, err := version.ParseRange(as.Range)
		out.Other = err != nil || !r.Allows(l.Version)
	}
	for _, i := range state.Sourced(l.Source) {
		out.Unhealthy = out.Unhealthy || !i.Healthy()
	}
	out.Repeated = !out.Cycle && shown[l.Source] && len(l.Dependencies) > 0
	shown[l.Source] = true
	if out.Cycle || out.Repeated {
		return out
	}
	for _, d := range l.Dependencies {
		i := slices.IndexFunc(state.Lock.Packages, func(o installed.Locked) bool { return o.Source == d.Source })
		if i < 0 {
			out.Needs = append(out.Needs, lockedPackage{Kind: string(d.Kind), Source: d.Source, Wanted: d.Range, Missing: true})
			continue
		}
		out.Needs = append(out.Needs, lockedOf(state, state.Lock.Packages[i], d, append(slices.Clip(path), l.Source), shown))
	}
	return out
}

func newPackageList(s *session) *cobra.Command {
	p := &packaging{session: s}
	var out output
	cmd := &cobra.Command{
		Use: "list", Short: "List packages with their versions and revisions", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			state, err := p.state(cmd.Context())
			if err != nil {
				return err
			}
			return p.list(state, out)
		},
	}
	p.addTo(cmd)
	out.addTo(cmd)
	return cmd
}

// listedPackage is a package of the list.
type listedPackage struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Source   string `json:"source"`
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Healthy  bool   `json:"healthy"`
	Objects  int    `json:"objects"`
}

func (p *packaging) list(state installed.State, out output) error {
	list := []listedPackage{}
	for _, i := range state.Packages {
		one := listedPackage{Kind: string(i.Kind), Name: i.Name, Source: i.Image.Source, Version: i.Image.Version, Revision: i.Revision, Healthy: i.Healthy()}
		for _, r := range state.Of(i) {
			if r.Name == i.Revision {
				one.Objects = len(r.Objects)
			}
		}
		list = append(list, one)
	}
	switch {
	case !out.text():
		return p.printData(out, list)
	case len(list) == 0:
		p.say("There are no packages.")
		return nil
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "KIND\tNAME\tSOURCE\tVERSION\tREVISION\tHEALTHY\tOBJECTS")
	for _, one := range list {
		healthy := map[bool]string{true: "True", false: "False"}[one.Healthy]
		write(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\n", one.Kind, one.Name, one.Source, one.Version, one.Revision, healthy, one.Objects)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the packages: %w", err)
	}
	return nil
}
