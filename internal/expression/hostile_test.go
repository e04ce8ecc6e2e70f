package expression

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	hostileSeed = flag.Uint64("hostile.seed", 1, "the seed of the first random expression")
	hostile     = flag.Int("hostile", 120, "how many random expressions to evaluate")
)

// What an evaluation takes at most. The time is that of the processor, those of the garbage
// collector included, for a machine that is busy takes longer. It is more than the limits of an
// evaluation, which is tried twice, because a single call is not interrupted.
const (
	mostMiB  = 256
	mostTime = slowdown * 10 * time.Second
)

// used is the time of the processor that this process has used.
func used(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// No expression has to be given up for janusd to survive it: whatever calls it makes, of all that
// CEL offers here, and whatever it hands on from one to the next, over an object as large as etcd
// takes, it ends in time and in little memory. What is counted is all that it allocates, of which
// it has never more in use.
func TestNoEvaluationTakesMuch(t *testing.T) {
	env, err := environ()
	require.NoError(t, err)
	w := newWriter(env)
	own := large()
	evaluated, refused := 0, 0
	for n := range *hostile {
		seed := *hostileSeed + uint64(n)
		w.random, w.depth = rand.New(rand.NewPCG(seed, 0)), 0 //nolint:gosec // it is to be the same each time
		text := w.expression(types.BoolType, 2+int(seed%4))
		e, err := Compile(text)
		if err != nil {
			continue
		}
		evaluated++
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := used(t)
		_, err = e.Evaluate(t.Context(), own, nil)
		took := used(t) - began
		runtime.ReadMemStats(&after)
		if err != nil && (strings.Contains(err.Error(), errCost.Error()) || strings.Contains(err.Error(), errTime.Error())) {
			refused++
		}
		assert.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(mostMiB), "MiB, of seed %d: %s", seed, text)
		assert.Less(t, took, mostTime, "seed %d: %s", seed, text)
	}
	t.Logf("%d evaluated, of which %d were refused", evaluated, refused)
	assert.Greater(t, evaluated, *hostile/4, "few of the random expressions are valid")
	assert.NotZero(t, refused, "none of them takes too much")
}

// large is an object of 1.5 MB, with long texts and with many keys.
func large() map[string]any {
	data := map[string]any{}
	for i := range 20_000 {
		data[fmt.Sprintf("key-%d", i)] = "v"
	}
	list := make([]any, 20_000)
	for i := range list {
		list[i] = int64(len(list) - i)
	}
	return map[string]any{
		"data": data, "list": list, "s": strings.Repeat("a", 400_000), "t": strings.Repeat("a", 399_999) + "b",
		"digits": strings.Repeat("9", 100_000), "url": "https://example.com/" + strings.Repeat("a", 50_000), "many": int64(1_000_000_000),
	}
}

// writer writes random expressions out of all functions that there are.
type writer struct {
	calls  []call
	random *rand.Rand
	depth  int
	scope  []string
}

type call struct {
	function string
	overload *cel.Type
	args     []*cel.Type
	member   bool
}

func newWriter(env *cel.Env) *writer {
	w := &writer{}
	for name, function := range env.Functions() {
		for _, o := range function.OverloadDecls() {
			w.calls = append(w.calls, call{name, o.ResultType(), o.ArgTypes(), o.IsMemberFunction()})
		}
	}
	slices.SortFunc(w.calls, func(a, b call) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return w
}

// leaves are values, large ones in front.
var leaves = map[string][]string{
	"string": {"object.s", "object.t", "object.digits", "object.url", `""`, `"a"`, `"(a+)+b"`, `"((a{30}){30})"`, `"%s%s"`, `"1Gi"`, `"10.0.0.0/8"`},
	"int":    {"object.many", "1000000", "object.list.size()", "2", "-1", "0"},
	"list":   {"object.list", "object.data.map(k, k)", `object.s.split("")`, "lists.range(100000)", "[object, object]", "[]"},
	"map":    {"object", "object.data", "{}", `{"a": object}`},
	"bytes":  {"bytes(object.s)", `b"a"`},
	"double": {"1.5", "double(object.many)"},
	"uint":   {"1u", "uint(object.many)"},
	"bool":   {"true", "false", "object == object"},
	"any":    {"object", "object.data", "object.list", "object.s", "object.many"},
}

// kindOf is under which name leaves has the values of a type.
func kindOf(of *cel.Type) string {
	switch of.Kind() {
	case types.StringKind, types.IntKind, types.ListKind, types.MapKind, types.BytesKind, types.DoubleKind, types.UintKind, types.BoolKind:
		return strings.SplitN(of.String(), "(", 2)[0]
	case types.DynKind, types.TypeParamKind, types.AnyKind:
		return "any"
	}
	return ""
}

func (w *writer) pick(from []string) string { return from[w.random.IntN(len(from))] }

// expression is one of a type, as deep as that.
func (w *writer) expression(of *cel.Type, deep int) string {
	kind := kindOf(of)
	if kind == "list" && deep > 0 && w.random.IntN(2) == 0 {
		return w.comprehension(deep)
	}
	if kind != "" && (deep <= 0 || w.random.IntN(6) == 0) {
		if len(w.scope) > 0 && w.random.IntN(2) == 0 {
			return "dyn(" + w.pick(w.scope) + ")"
		}
		return "dyn(" + w.pick(leaves[kind]) + ")"
	}
	var fit []call
	for _, c := range w.calls {
		if kindOf(c.overload) == kind && (kind != "" || c.overload.String() == of.String()) {
			fit = append(fit, c)
		}
	}
	if len(fit) == 0 || deep < -3 {
		return "dyn(object.s)"
	}
	return w.call(fit[w.random.IntN(len(fit))], deep)
}

func (w *writer) comprehension(deep int) string {
	name := fmt.Sprintf("v%d", len(w.scope))
	over := w.expression(types.NewListType(types.DynType), deep-1)
	w.scope = append(w.scope, name)
	defer func() { w.scope = w.scope[:len(w.scope)-1] }()
	if w.random.IntN(3) == 0 {
		return over + ".filter(" + name + ", " + w.expression(types.BoolType, deep-1) + ")"
	}
	return over + ".map(" + name + ", " + w.expression(types.DynType, deep-1) + ")"
}

func (w *writer) call(c call, deep int) string {
	args := make([]string, len(c.args))
	for i, arg := range c.args {
		args[i] = w.expression(arg, deep-1)
	}
	operator := strings.Trim(strings.Trim(c.function, "@"), "_")
	switch {
	case c.function == "_?_:_":
		return "(" + args[0] + " ? " + args[1] + " : " + args[2] + ")"
	case c.function == "_[_]":
		return args[0] + "[" + args[1] + "]"
	case c.function == "_[?_]":
		return args[0] + "[?" + args[1] + "]"
	case strings.HasPrefix(c.function, "_?."), strings.HasPrefix(c.function, "@not"), strings.HasPrefix(c.function, "@map"):
		return args[0]
	case len(args) == 2 && (strings.HasPrefix(c.function, "_") || c.function == "@in"):
		return "(" + args[0] + " " + operator + " " + args[1] + ")"
	case strings.HasSuffix(c.function, "_"):
		return operator + "(" + args[0] + ")"
	case c.member:
		return args[0] + "." + c.function + "(" + strings.Join(args[1:], ", ") + ")"
	}
	return c.function + "(" + strings.Join(args, ", ") + ")"
}
