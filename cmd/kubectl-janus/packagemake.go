package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
)

// make has a command plan a change, ask, and create the Transaction.
func (p *planningPackages) make(cmd *cobra.Command, ask func(args []string) error) {
	const how = `It is planned and checked first, and made by one Transaction, once you have agreed; --yes does not ask.
--service-account is the one as which the changes are made.`
	if cmd.Long == "" {
		cmd.Long = cmd.Short + "."
	}
	cmd.Long += "\n\n" + how
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := ask(args); err != nil {
			return err
		}
		return p.change(cmd.Context())
	}
	f := cmd.Flags()
	f.StringVarP(&p.account, accountFlag, "s", "", "the ServiceAccount of the namespace as which the changes are made")
	f.BoolVarP(&p.yes, "yes", "y", false, "do not ask")
	p.ends.addAll(cmd)
}

func (p *planningPackages) change(ctx context.Context) error {
	plan, err := p.planned(ctx)
	switch {
	case err != nil:
		return err
	case len(plan.Findings.Errors()) > 0:
		return errors.New("nothing is changed: see above what stands in the way")
	case len(plan.Change.Steps) == 0:
		return nil
	}
	t, err := p.transaction(plan)
	if err != nil {
		return err
	}
	if !p.yes {
		if err := p.agreed(ctx, "Make these changes?", "nothing is changed"); err != nil {
			return err
		}
	}
	u, err := untyped(t)
	if err != nil {
		return err
	}
	// The same change may have been rolled back before.
	u.SetGenerateName(short(u.GetName()) + "-")
	u.SetName("")
	return p.ends.carryOut(ctx, p.session, draft{Unstructured: u})
}
