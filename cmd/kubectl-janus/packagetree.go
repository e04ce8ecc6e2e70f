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
	cmd := &cobra.Command{
		Use: "tree [SOURCE|NAME]", Short: "Show packages with what they need, and whether that is what they ask for", Args: cobra.MaximumNArgs(1),
		Example: `  kubectl janus package tree`,
		RunE: func(cmd *cobra.Command, args []string) error {
			state, err := p.state(cmd.Context())
			if err != nil {
				return err
			}
			return p.tree(state, args)
		},
	}
	p.addTo(cmd)
	return cmd
}

func (p *packaging) tree(state installed.State, args []string) error {
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
	if len(args) == 0 && len(roots) == 0 && len(state.Lock.Packages) > 0 {
		// Every package is needed by another one: they are in a cycle.
		roots = state.Lock.Packages
	}
	for _, l := range roots {
		top := lockedNode(state, l, image.Dependency{}, nil)
		p.print("%s", top.text)
		p.branches(top.children, "")
	}
	if len(roots) == 0 {
		p.say("There are no packages.")
	}
	return nil
}

// lockedNode is a package with what it needs.
func lockedNode(state installed.State, l installed.Locked, as image.Dependency, path []string) node {
	n := node{text: fmt.Sprintf("%s %s %s", l.Kind, l.Source, l.Version)}
	if as.Range != "" {
		n.text += " for " + as.Range
		if r, err := version.ParseRange(as.Range); err != nil || !r.Allows(l.Version) {
			n.text += ", which it is not"
		}
	}
	for _, i := range state.Sourced(l.Source) {
		if !i.Healthy() {
			n.text += " (unhealthy)"
		}
	}
	if slices.Contains(path, l.Source) {
		n.text += " (a cycle)"
		return n
	}
	for _, d := range l.Dependencies {
		i := slices.IndexFunc(state.Lock.Packages, func(o installed.Locked) bool { return o.Source == d.Source })
		if i < 0 {
			n.children = append(n.children, node{text: fmt.Sprintf("%s %s for %s (missing)", d.Kind, d.Source, d.Range)})
			continue
		}
		n.children = append(n.children, lockedNode(state, state.Lock.Packages[i], d, append(slices.Clip(path), l.Source)))
	}
	return n
}

func newPackageList(s *session) *cobra.Command {
	p := &packaging{session: s}
	cmd := &cobra.Command{
		Use: "list", Short: "List packages with their versions and revisions", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			state, err := p.state(cmd.Context())
			if err != nil {
				return err
			}
			p.list(state)
			return nil
		},
	}
	p.addTo(cmd)
	return cmd
}

func (p *packaging) list(state installed.State) {
	if len(state.Packages) == 0 {
		p.say("There are no packages.")
		return
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "KIND\tNAME\tSOURCE\tVERSION\tREVISION\tHEALTHY\tOBJECTS")
	for _, i := range state.Packages {
		objects := 0
		for _, r := range state.Of(i) {
			if r.Name == i.Revision {
				objects = len(r.Objects)
			}
		}
		healthy := "False"
		if i.Healthy() {
			healthy = "True"
		}
		write(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\n", i.Kind, i.Name, i.Image.Source, i.Image.Version, i.Revision, healthy, objects)
	}
	_ = w.Flush()
}
