package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/registries"
	"janus.io/janus/packages"
	"janus.io/janus/packages/change"
	"janus.io/janus/packages/check"
	"janus.io/janus/packages/compile"
	"janus.io/janus/packages/image"
	"janus.io/janus/packages/installed"
)

func newPackage(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use: "package", Aliases: []string{"pkg"}, Short: "Change Crossplane packages, and show which there are",
		Long: `Change Crossplane packages, and show which there are. A change is planned and checked first, and made by one
Transaction: by install, delete and replace, or by kubectl create from what plan prints with -o yaml.`,
	}
	cmd.AddCommand(newPackagePlan(s), newPackageTree(s), newPackageList(s), newInstall(s, true), newDeletion(s, true), newReplacement(s, true))
	return cmd
}

// packaging is what the commands about packages have in common.
type packaging struct {
	*session
	crossplane string // its namespace
	version    string // of Crossplane
}

func (p *packaging) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.crossplane, "crossplane-namespace", packages.DefaultNamespace, "the namespace of Crossplane")
}

// planner reads the cluster and its registries.
func (p *packaging) planner(ctx context.Context) (packages.Planner, error) {
	cluster, err := p.dynamic()
	if err != nil {
		return packages.Planner{}, err
	}
	is := packages.Crossplane(ctx, cluster, p.crossplane)
	if p.version != "" {
		is.Version = p.version
	}
	return packages.Planner{Cluster: cluster, Crossplane: is, Registries: packages.Pulling(cluster, p.crossplane, registries.DefaultPatience)}, nil
}

// state is what the cluster has of packages.
func (p *packaging) state(ctx context.Context) (installed.State, error) {
	planner, err := p.planner(ctx)
	if err != nil {
		return installed.State{}, err
	}
	state, err := planner.State(ctx)
	if errors.Is(err, packages.ErrMissing) {
		return state, errors.New("PackageManagerMissing: Crossplane is not installed in the cluster")
	}
	return state, err
}

// planningPackages is a command that plans a change.
type planningPackages struct {
	packaging
	request packages.Request
	account string
	wait    time.Duration
	timeout time.Duration
	output  output // of a plan: the Transaction in place of text
	// makes says that the change is made, once someone has agreed.
	makes bool
	yes   bool
	ends  waits
	// allow is what may pass that is refused otherwise.
	allow check.Allowed
}

func newPackagePlan(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use: "plan", Short: "Check a change of packages, and show the Transaction that makes it",
		Long: `Check a change of Crossplane packages, and show the Transaction that makes it. Images are read with the pull secrets
that Crossplane would use, and with the credentials of the user. Nothing is written.

All is checked that can be told before: versions of all dependencies, cycles, who controls which objects, what happens
to custom resources. What stands in the way is listed at once, each with a reason.

Exit codes: 0 nothing would change, 1 something would, 2 something stands in the way, or it cannot be told. With
-o yaml, which prints the Transaction alone, the code is 0 if it is printed.`,
	}
	cmd.AddCommand(newInstall(s, false), newDeletion(s, false), newReplacement(s, false))
	return cmd
}

func (p *planningPackages) command(s *session, cmd *cobra.Command, ask func(args []string) error) *cobra.Command {
	p.session = s
	if p.makes {
		cmd.Short = strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:]
	} else {
		cmd.Short = "Plan to " + cmd.Short
	}
	cmd.Example = strings.ReplaceAll(cmd.Example, "package VERB", "package "+map[bool]string{true: cmd.Name(), false: "plan " + cmd.Name()}[p.makes])
	p.addTo(cmd)
	f := cmd.Flags()
	if p.makes {
		p.make(cmd, ask)
	} else {
		args := cmd.Args
		cmd.Args = func(cmd *cobra.Command, given []string) error { return trouble(args(cmd, given)) }
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := ask(args); err != nil {
				return trouble(err)
			}
			return trouble(p.plan(cmd.Context()))
		}
		cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return trouble(plainFlagError(cmd, err)) })
		f.StringVarP(&p.account, accountFlag, "s", "", "the ServiceAccount of the namespace as which the changes are made; -o yaml needs it")
		f.VarP(&p.output, "output", "o", "print the Transaction alone, as json or yaml")
		completeOf(cmd, "output", "yaml", "json")
	}
	f.BoolVar(&p.allow.DataLoss, flagsThatAllow[check.DataLoss], false, "let custom resources be deleted with their definition; neither a rollback nor an undo brings them back")
	f.StringVar(&p.version, "crossplane-version", "", "the version of Crossplane; the default is that of its Deployment")
	f.DurationVar(&p.wait, "package-timeout", 5*time.Minute, "how long a package may take to become healthy")
	f.DurationVar(&p.timeout, "transaction-timeout", 30*time.Minute, "spec.timeout: how long the changes may take before they are rolled back")
	return cmd
}

func newInstall(s *session, makes bool) *cobra.Command {
	p := &planningPackages{request: packages.Request{Type: change.Install}, makes: makes}
	cmd := p.command(s, &cobra.Command{
		Use: "install IMAGE", Args: cobra.ExactArgs(1), Short: "install a package, or move it to another version",
		Example: `  kubectl janus package VERB xpkg.crossplane.io/crossplane-contrib/provider-nop:v0.4.0 --service-account installer`,
	}, func(args []string) error { return p.image(args[0]) })
	cmd.Flags().StringVar(&p.request.Name, "name", "", "the name of the package if it is new; the default is the one that Crossplane gives a dependency")
	p.allowMoves(cmd)
	return cmd
}

func newDeletion(s *session, makes bool) *cobra.Command {
	p := &planningPackages{request: packages.Request{Type: change.Delete}, makes: makes}
	return p.command(s, &cobra.Command{
		Use: "delete SOURCE|NAME...", Args: cobra.MinimumNArgs(1), Short: "delete packages that no others need",
		Example: `  kubectl janus package VERB crossplane-contrib-provider-nop --service-account installer`,
	}, func(args []string) error {
		p.request.Targets = args
		return nil
	})
}

func newReplacement(s *session, makes bool) *cobra.Command {
	p := &planningPackages{request: packages.Request{Type: change.Replace}, makes: makes}
	cmd := p.command(s, &cobra.Command{
		Use: "replace SOURCE|NAME IMAGE", Args: cobra.ExactArgs(2), Short: "have a package take over the objects of another",
		Long: `Have a package take over the objects of another, such as the same provider of another publisher. What the new one
needs takes over from what the old one needs. The custom resources stay. The old packages stay too, inactive: delete
them once the new ones have proved themselves; until then the Transaction can be undone.`,
		Example: `  kubectl janus package VERB upbound-provider-nop xpkg.crossplane.io/crossplane-contrib/provider-nop:v0.4.0 --service-account installer`,
	}, func(args []string) error {
		p.request.Targets = args[:1]
		return p.image(args[1])
	})
	cmd.Flags().StringVar(&p.request.Name, "name", "", "the name of the new package; the default is the one that Crossplane gives a dependency")
	p.allowMoves(cmd)
	return cmd
}

// flagsThatAllow are the flags that let a finding pass.
var flagsThatAllow = map[check.Reason]string{
	check.Downgrade: "allow-downgrade", check.SchemaIncompatible: "allow-schema-narrowing", check.DataLoss: "allow-data-loss",
}

// allowMoves adds the flags of commands that move packages.
func (p *planningPackages) allowMoves(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&p.allow.Downgrade, flagsThatAllow[check.Downgrade], false, "let packages go back to an older version")
	f.BoolVar(&p.allow.SchemaNarrowing, flagsThatAllow[check.SchemaIncompatible], false, "let a package drop or narrow versions and fields of a kind, although custom resources are harmed by it")
}

func (p *planningPackages) image(text string) error {
	ref, err := image.ParseReference(text)
	p.request.Image = ref
	return err
}

// plan plans, and prints what comes of it.
func (p *planningPackages) plan(ctx context.Context) error {
	plan, err := p.planned(ctx)
	switch {
	case err != nil:
		return err
	case len(plan.Findings.Errors()) > 0:
		return &exitError{code: exitTrouble}
	case len(plan.Change.Steps) == 0:
		return nil
	case p.account == "" && p.output.text():
		return &exitError{code: exitDiffers}
	}
	t, err := p.transaction(plan)
	if err != nil {
		return err
	}
	if !p.output.text() {
		return p.printTransaction(t)
	}
	p.showTransaction(t)
	return &exitError{code: exitDiffers}
}

// planned plans, and says what was found.
func (p *planningPackages) planned(ctx context.Context) (packages.Plan, error) {
	planner, err := p.planner(ctx)
	if err != nil {
		return packages.Plan{}, err
	}
	plan, err := planner.Plan(ctx, p.request)
	if err != nil {
		return plan, err
	}
	plan.Findings = plan.Findings.Judged(p.allow)
	if p.output.text() {
		p.show(plan)
	}
	p.tell(plan.Findings)
	return plan, nil
}

func (p *planningPackages) transaction(plan packages.Plan) (*api.Transaction, error) {
	namespace, err := p.namespace()
	if err != nil {
		return nil, err
	}
	if p.account == "" {
		return nil, errors.New("no ServiceAccount is named: set --service-account to the one that makes the changes")
	}
	return compile.Transaction(plan.Change, compile.Options{
		Namespace: namespace, ServiceAccount: p.account, LockNamespace: p.crossplane,
		PackageTimeout: api.Duration(p.wait.String()), Timeout: api.Duration(p.timeout.String()), AcceptLoss: p.allow.DataLoss,
	})
}
