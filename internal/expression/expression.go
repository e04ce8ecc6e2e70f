package expression

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	celtypes "github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// The variables of an expression.
const (
	object  = "object"
	objects = "objects"
)

// Expression is a CEL expression that is true or false, or text.
type Expression struct {
	program cel.Program
	names   []string
	own     bool
}

// environ is the dialect of the API server with the variables of an expression.
var environ = sync.OnceValues(func() (*cel.Env, error) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			cel.Variable(object, cel.DynType),
			cel.Variable(objects, cel.MapType(cel.StringType, cel.DynType)),
		},
	})
	if err != nil {
		return nil, err
	}
	return set.Env(environment.NewExpressions)
})

// Compile checks an expression that is true or false. Its errors say where it is wrong, and
// have nothing else in them than the expression.
func Compile(text string) (*Expression, error) { return compile(text, cel.BoolType, truth) }

// CompileText checks an expression that is text, as Compile does.
func CompileText(text string) (*Expression, error) { return compile(text, cel.StringType, prose) }

// What an expression has to be.
const (
	truth = "true or false"
	prose = "text"
)

func compile(text string, want *cel.Type, called string) (*Expression, error) {
	env, err := environ()
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	if kind := checked.OutputType(); !kind.IsExactType(want) && !kind.IsExactType(cel.DynType) {
		return nil, wrongType(kind.String(), called)
	}
	e := &Expression{}
	if err := e.inspect(checked.NativeRep()); err != nil {
		return nil, err
	}
	e.program, err = program(env, checked)
	return e, err
}

// Names lists the names of objects that the expression asks for.
func (e *Expression) Names() []string { return e.names }

// AsksForObject reports whether it asks for its own target.
func (e *Expression) AsksForObject() bool { return e.own }

// lookups are the ways to ask for an entry, but for the plain one.
var lookups = []string{operators.Index, operators.OptIndex, operators.OptSelect}

// inspect finds out which objects the expression asks for.
func (e *Expression) inspect(checked *ast.AST) error {
	named := map[int64]bool{} // places where objects is followed by a name
	var loose bool
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		switch x.Kind() {
		case ast.SelectKind:
			if of := x.AsSelect().Operand(); isIdent(of, objects) {
				named[of.ID()] = true
				e.names = append(e.names, x.AsSelect().FieldName())
			}
		case ast.CallKind:
			call := x.AsCall()
			if !slices.Contains(lookups, call.FunctionName()) || len(call.Args()) != 2 || !isIdent(call.Args()[0], objects) {
				return
			}
			if name, ok := call.Args()[1].AsLiteral().(celtypes.String); ok {
				named[call.Args()[0].ID()] = true
				e.names = append(e.names, string(name))
			}
		case ast.IdentKind:
			e.own = e.own || x.AsIdent() == object
			loose = loose || x.AsIdent() == objects && !named[x.ID()]
		}
	}))
	slices.Sort(e.names)
	e.names = slices.Compact(e.names)
	if loose {
		return errors.New(`objects must be followed by the name of a change, such as objects.database or objects["my-database"]`)
	}
	return nil
}

func isIdent(x ast.Expr, name string) bool { return x.Kind() == ast.IdentKind && x.AsIdent() == name }

// Evaluate returns the value of the expression for the object itself, nil if there is
// none, and those that it asks for by name. Its errors may have content of them.
func (e *Expression) Evaluate(ctx context.Context, own map[string]any, named map[string]map[string]any) (bool, error) {
	return valueOf[bool](ctx, e, truth, own, named)
}

// Text returns what an expression that is text says, as Evaluate does.
func (e *Expression) Text(ctx context.Context, own map[string]any, named map[string]map[string]any) (string, error) {
	return valueOf[string](ctx, e, prose, own, named)
}

func valueOf[T any](ctx context.Context, e *Expression, called string, own map[string]any, named map[string]map[string]any) (T, error) {
	var none T
	others := make(map[string]any, len(named))
	for name, content := range named {
		others[name] = orNull(content)
	}
	value, err := evaluate(ctx, e.program, map[string]any{object: orNull(own), objects: others})
	if err != nil {
		return none, err
	}
	if got, ok := value.Value().(T); ok {
		return got, nil
	}
	return none, wrongType(value.Type().TypeName(), called)
}

func wrongType(is, must string) error {
	return fmt.Errorf("it is of type %s, and must be %s", is, must)
}

// orNull makes null of no object.
func orNull(content map[string]any) any {
	if content == nil {
		return celtypes.NullValue
	}
	return content
}
