package expression

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// kinds is the variable of an expression over the kinds that a cluster serves.
const kinds = "kinds"

// mostKinds is how many kinds a cluster is taken to serve at most, by which the cost of an
// expression is estimated.
const mostKinds = 10_000

// Kind is a kind that a cluster serves, in one of its versions.
type Kind struct {
	Group, Version, Kind, Resource string
	Namespaced                     bool
}

// Kinds is a CEL expression over the kinds that a cluster serves, which is true or false.
type Kinds struct{ program cel.Program }

// kindEnviron is the dialect of the API server with the variable kinds alone. The fields of a
// kind are declared, so that one that there is not is found when the expression is compiled.
var kindEnviron = sync.OnceValues(func() (*cel.Env, error) {
	fields := map[string]*apiservercel.DeclField{}
	for _, name := range []string{"group", "version", "kind", "resource"} {
		fields[name] = apiservercel.NewDeclField(name, apiservercel.StringType, true, nil, nil)
	}
	fields["namespaced"] = apiservercel.NewDeclField("namespaced", apiservercel.BoolType, true, nil, nil)
	kind := apiservercel.NewObjectType("janus.Kind", fields)
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable(kinds, apiservercel.NewListType(kind, mostKinds).CelType())},
		DeclTypes:         []*apiservercel.DeclType{kind},
	})
	if err != nil {
		return nil, err
	}
	return set.Env(environment.NewExpressions)
})

// CompileKinds checks an expression over kinds, as Compile does.
func CompileKinds(text string) (*Kinds, error) {
	env, err := kindEnviron()
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	if kind := checked.OutputType(); !kind.IsExactType(cel.BoolType) && !kind.IsExactType(cel.DynType) {
		return nil, wrongType(kind.String(), truth)
	}
	p, err := program(env, checked)
	return &Kinds{p}, err
}

// Evaluate returns the value of the expression for the kinds that are served.
func (k *Kinds) Evaluate(ctx context.Context, served []Kind) (bool, error) {
	all := make([]any, len(served))
	for i, s := range served {
		all[i] = map[string]any{"group": s.Group, "version": s.Version, "kind": s.Kind, "resource": s.Resource, "namespaced": s.Namespaced}
	}
	value, err := evaluate(ctx, k.program, map[string]any{kinds: all})
	if err != nil {
		return false, err
	}
	if got, ok := value.Value().(bool); ok {
		return got, nil
	}
	return false, wrongType(value.Type().TypeName(), truth)
}
