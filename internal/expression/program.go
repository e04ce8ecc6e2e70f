package expression

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	celtypes "github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// evaluationTimes are how long an evaluation may take, and how long it may take once more: the
// machine may have been busy.
var evaluationTimes = []time.Duration{slowdown * 200 * time.Millisecond, slowdown * time.Second}

// interruptions is after how many elements of a list it is checked whether the time is over: after
// each, since the elements of lists in lists are counted together, and the outer list may never
// have its turn otherwise.
const interruptions = 1

// errCost says that an evaluation would take too much.
var errCost = errors.New("it costs more than an expression may: compare less, or a smaller part of the object")

// errTime says that an evaluation takes too long.
var errTime = fmt.Errorf("it takes longer than %s, and longer than %s when tried again: compare less, or a smaller part of the object", evaluationTimes[0], evaluationTimes[1])

// program makes a program of a checked expression, within bounds of cost and time.
func program(env *cel.Env, checked *cel.Ast) (cel.Program, error) {
	if err := regexesFit(checked); err != nil {
		return nil, err
	}
	decorator, err := bounded(env)
	if err != nil {
		return nil, err
	}
	return env.Program(checked, cel.CostLimit(costLimit), cel.CostTracking(&realCost{}), cel.InterruptCheckFrequency(interruptions), cel.CustomDecorator(decorator))
}

// regexesFit refuses regular expressions in the text that are large: they are compiled with it.
func regexesFit(checked *cel.Ast) error {
	var err error
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if x.Kind() != ast.CallKind || !slices.Contains([]string{"matches", "find", "findAll"}, x.AsCall().FunctionName()) {
			return
		}
		for _, arg := range x.AsCall().Args() {
			if regex, ok := arg.AsLiteral().(celtypes.String); ok && !small(string(regex)) {
				err = fmt.Errorf("a regular expression in it has more than %d parts, repetitions counted", mostRegexParts)
			}
		}
	}))
	return err
}

// free are calls that cost nothing to speak of whatever they are given, or that CEL makes in
// another way.
var free = []string{
	operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional, operators.NotStrictlyFalse,
	operators.Index, operators.OptIndex, operators.OptSelect, operators.Add, "size", "type", "dyn",
}

// bounded has the cost of each call known before it is made.
func bounded(env *cel.Env) (interpreter.InterpretableDecorator, error) {
	all := map[string]*functions.Overload{}
	for _, function := range env.Functions() {
		overloads, err := function.Bindings()
		if err != nil {
			return nil, fmt.Errorf("find the functions of CEL: %w", err)
		}
		for _, overload := range overloads {
			all[overload.Operator] = overload
		}
	}
	return func(i interpreter.Interpretable) (interpreter.Interpretable, error) {
		call, ok := i.(interpreter.InterpretableCall)
		if !ok || len(call.Args()) == 0 || slices.Contains(free, call.Function()) {
			return i, nil
		}
		made := maker(all, call)
		if made == nil {
			return i, nil
		}
		function := call.Function()
		if function == "findAll" {
			function += bound // CEL would replace it by a call with the expression compiled, whose result has no bound.
		}
		return interpreter.NewCall(call.ID(), function, call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
			if work(call.Function(), args) > costLimit {
				return celtypes.WrapErr(errCost)
			}
			return made(args)
		}), nil
	}, nil
}

// maker returns what makes a call, nil if that is not known.
func maker(all map[string]*functions.Overload, call interpreter.InterpretableCall) func(args []ref.Val) ref.Val {
	switch call.Function() {
	case operators.Equals:
		return func(args []ref.Val) ref.Val { return celtypes.Equal(args[0], args[1]) }
	case operators.NotEquals:
		return func(args []ref.Val) ref.Val { return celtypes.Bool(celtypes.Equal(args[0], args[1]) != celtypes.True) }
	}
	overload := all[call.OverloadID()]
	if overload == nil {
		overload = all[call.Function()]
	}
	if overload == nil || overload.NonStrict {
		return nil
	}
	return func(args []ref.Val) ref.Val {
		if overload.OperandTrait == 0 || args[0].Type().HasTrait(overload.OperandTrait) {
			switch {
			case len(args) == 1 && overload.Unary != nil:
				return overload.Unary(args[0])
			case len(args) == 2 && overload.Binary != nil:
				return overload.Binary(args[0], args[1])
			case overload.Function != nil:
				return overload.Function(args...)
			}
		}
		if receiver, ok := args[0].(traits.Receiver); ok && args[0].Type().HasTrait(traits.ReceiverType) {
			return receiver.Receive(call.Function(), call.OverloadID(), args[1:])
		}
		return celtypes.NewErr("no such overload: %s", call.Function())
	}
}

// evaluate evaluates a program in time.
func evaluate(ctx context.Context, p cel.Program, over map[string]any) (ref.Val, error) {
	for _, limit := range evaluationTimes {
		within, cancel := context.WithTimeout(ctx, limit)
		value, _, err := p.ContextEval(within, over)
		late := within.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("evaluate: %w", ctx.Err())
		case isCancelled(err, interpreter.CostLimitExceeded), errors.Is(err, errCost):
			return nil, errCost
		case late:
			// Whatever came out: an operand that was interrupted may be taken for an error that
			// another one makes up for.
			continue
		default:
			return value, err
		}
	}
	return nil, errTime
}

func isCancelled(err error, cause interpreter.CancellationCause) bool {
	var cancelled interpreter.EvalCancelledError
	return errors.As(err, &cancelled) && cancelled.Cause == cause
}
