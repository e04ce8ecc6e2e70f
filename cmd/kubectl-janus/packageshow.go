package main

import (
	"fmt"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/packages"
	"janus.io/janus/packages/change"
	"janus.io/janus/packages/check"
)

// show prints what happens to packages, and of what they define: on standard error if the
// Transaction is wanted on standard output.
func (p *planningPackages) show(plan packages.Plan) {
	c := plan.Change
	if len(c.Steps) == 0 {
		return
	}
	top := node{text: fmt.Sprintf("%s %s", c.Type, c.Root)}
	if c.Replaced != nil {
		top.text += " in the place of " + c.Replaced.Image.Source
	}
	for _, s := range c.Steps {
		top.children = append(top.children, stepNode(c, s))
	}
	out := *p.session
	if !p.ends.out.text() {
		out.Out = out.ErrOut
	}
	out.print("%s", top.text)
	out.branches(top.children, "")
}

func stepNode(c change.Change, s change.Step) node {
	n := node{}
	switch {
	case s.Goes():
		n.text = fmt.Sprintf("- %s %s: %s goes", s.Kind, s.Name, s.From)
	case s.Comes() && s.Replaces != nil && s.Source != c.Root:
		n.text = fmt.Sprintf("+ %s %s: %s comes in the place of %s, as %s", s.Kind, s.Name, s.To, s.Replaces.Name, s.Revision)
	case s.Comes():
		n.text = fmt.Sprintf("+ %s %s: %s comes, as %s", s.Kind, s.Name, s.To, s.Revision)
	default:
		n.text = fmt.Sprintf("~ %s %s: %s becomes %s, as %s", s.Kind, s.Name, s.From, s.To, s.Revision)
	}
	if s.Goes() {
		for _, r := range c.State.Of(*s.Existing) {
			for _, o := range r.Objects {
				n.children = append(n.children, node{text: fmt.Sprintf("- %s", o)})
			}
		}
		return n
	}
	for _, u := range s.Content.Objects {
		o := change.Brought(u)
		kind, there := c.Found.Kinds[o.Name]
		switch {
		case !change.Defines(o):
			n.children = append(n.children, node{text: fmt.Sprintf("  %s", o)})
		case !there:
			n.children = append(n.children, node{text: fmt.Sprintf("+ %s", o)})
		default:
			n.children = append(n.children, kindNode(fmt.Sprintf("~ %s", o), kind))
		}
	}
	return n
}

// kindNode is a definition that there is, with its differences.
func kindNode(text string, kind change.Kind) node {
	n := node{text: fmt.Sprintf("%s, with %s", text, kind.Resources())}
	for _, d := range kind.Differences {
		mark := " "
		if d.Breaking {
			mark = "!"
		}
		n.children = append(n.children, node{text: fmt.Sprintf("%s %s", mark, d)})
	}
	return n
}

// tell prints the findings.
func (p *planningPackages) tell(findings check.Findings) {
	for _, f := range findings {
		kind, wayOut := "error", ""
		if flag, ok := flagsThatAllow[f.Reason]; ok {
			wayOut = " (--" + flag + " lets it pass)"
		}
		if f.Warning {
			kind, wayOut = "warning", ""
		}
		p.say("%s: %s: %s%s", kind, f.Reason, f.Message, wayOut)
	}
}

func (p *planningPackages) showTransaction(t *api.Transaction) {
	p.print("\nTransaction %s/%s with %d changes; -o yaml prints it", t.Namespace, t.Name, len(t.Spec.Changes))
}

// printTransaction prints one for kubectl create.
func (p *planningPackages) printTransaction(t *api.Transaction) error {
	u, err := untyped(t)
	if err != nil {
		return err
	}
	return p.printData(p.output, u.Object)
}
