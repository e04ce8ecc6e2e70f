package expression

import (
	"math"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/operators"
	celtypes "github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

// costLimit is what one evaluation may cost, as in the API server: a step is 1, and so are an
// element of a list and ten bytes of text.
const costLimit = celconfig.PerCallLimit

const (
	perByte = 0.1
	// perRegexByte is by how much each byte of a regular expression multiplies the cost of a text.
	perRegexByte = 0.25
	// mostRegexParts is how many parts a regular expression may have, repetitions counted.
	mostRegexParts = 1000
	// perCompared is the cost of two characters that are compared where a text is looked for in
	// another one: CEL begins again at each of them.
	perCompared = 0.002
	// mostParsed is how many bytes are parsed as a number, and mostExponent its largest exponent: a
	// quantity is compared with all of its digits.
	mostParsed, mostExponent = 1 << 10, 1 << 10
)

// bound ends the name of a function that CEL is not to know.
const bound = ", bounded"

// realCost charges each call by the sizes of its arguments and of its result as they are. CEL
// itself goes by overloads, of which it has chosen none where a type is dynamic, as those of all
// objects are.
type realCost struct{ known library.CostEstimator }

// CallCost implements interpreter.ActualCostEstimator.
func (c *realCost) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	function = strings.TrimSuffix(function, bound)
	cost := 1 + work(function, args) + made(result)
	if cost <= costLimit { // What is known goes through all that there is, however much that is.
		if known := c.known.CallCost(function, overload, args, result); known != nil {
			cost = max(cost, float64(*known))
		}
	}
	out := uint64(min(math.Ceil(cost), 2*costLimit))
	return &out
}

// work is about what a call costs. It is asked before the call is made, too: some make very much
// of little.
func work(function string, args []ref.Val) float64 {
	switch function {
	case "size", "type", "dyn", "optional.of":
		return 0
	case operators.Add:
		return added(args)
	case "lists.range":
		return number(args, 0)
	case "distinct", "sets.contains", "sets.intersects", "sets.equivalent":
		return deep(args...) + perByte*deep(args[0])*elements(args, len(args)-1)
	case "matches", "find":
		return regexCost(args)
	case "findAll":
		return regexCost(args) + 2*float64(len(text(args, 0))) // Each byte may be an element.
	case "split":
		return texts(args) + 2*float64(strings.Count(text(args, 0), text(args, 1)))
	case "replace":
		return texts(args) + replaced(args)
	case "join":
		return deep(args...) + perByte*elements(args, 0)*float64(len(text(args, 1)))
	case "indexOf", "lastIndexOf":
		return deep(args...) + perCompared*compared(text(args, 0), text(args, 1))
	case "quantity", "isQuantity":
		if exponent(text(args, 0)) > mostExponent || len(text(args, 0)) > mostParsed {
			return math.Inf(1)
		}
	case "semver", "isSemver":
		if len(text(args, 0)) > mostParsed {
			return math.Inf(1)
		}
	}
	return deep(args...)
}

// added is what it costs to add two values. A list that CEL makes itself, as of map and filter, grows
// in place. Others are put one behind the other, and each of their elements is counted.
func added(args []ref.Val) float64 {
	if _, grows := args[0].(traits.MutableLister); grows {
		args = args[1:]
	}
	var sum float64
	for _, arg := range args {
		sum += size(arg)
	}
	return sum
}

// texts is the size of those values that are text.
func texts(args []ref.Val) (sum float64) {
	for _, arg := range args {
		sum += made(arg)
	}
	return sum
}

// made is the size of a value that was made: of a text. The elements of a list are there already.
func made(v ref.Val) float64 {
	switch v.(type) {
	case celtypes.String, celtypes.Bytes:
		return size(v)
	}
	return 0
}

// size is that of a value without what is in its elements.
func size(v ref.Val) float64 {
	switch v := v.(type) {
	case celtypes.String:
		return perByte * float64(len(v))
	case celtypes.Bytes:
		return perByte * float64(len(v))
	case traits.Sizer:
		if n, ok := v.Size().(celtypes.Int); ok {
			return float64(n)
		}
	}
	return 0
}

// deep is the size of values with all that is in them, as far as the limit.
func deep(values ...ref.Val) (sum float64) {
	for _, v := range values {
		sum += size(v)
		iterable, ok := v.(traits.Iterable)
		if !ok || sum > costLimit {
			continue
		}
		mapper, isMap := v.(traits.Mapper)
		for it := iterable.Iterator(); sum <= costLimit && it.HasNext() == celtypes.True; {
			element := it.Next()
			sum += deep(element)
			if isMap {
				sum += deep(mapper.Get(element))
			}
		}
	}
	return sum
}

func elements(args []ref.Val, i int) float64 {
	if i < len(args) {
		if _, ok := args[i].(traits.Lister); ok {
			return size(args[i])
		}
	}
	return 0
}

func text(args []ref.Val, i int) string {
	if i < len(args) {
		if s, ok := args[i].(celtypes.String); ok {
			return string(s)
		}
	}
	return ""
}

func number(args []ref.Val, i int) float64 {
	if i < len(args) {
		if n, ok := args[i].(celtypes.Int); ok {
			return float64(n)
		}
	}
	return 0
}

// compared is how many characters are compared at most to find a text in another one.
func compared(in, sought string) float64 {
	return float64(max(len(in)-len(sought)+1, 0)) * float64(len(sought))
}

// exponent is that of a number such as 1e3, whatever its sign; zero for what has none.
func exponent(number string) float64 {
	before, after, _ := strings.Cut(strings.ToLower(number), "e")
	if strings.Trim(before, "+-.0123456789") != "" {
		return 0
	}
	n, _ := strconv.Atoi(after) // The largest that there is for one that is larger still.
	return math.Abs(float64(n))
}

// replaced is what replace puts in.
func replaced(args []ref.Val) float64 {
	in, with := text(args, 0), text(args, 2)
	times := float64(strings.Count(in, text(args, 1)))
	if len(args) > 3 && number(args, 3) >= 0 {
		times = min(times, number(args, 3))
	}
	return perByte * times * float64(len(with))
}

// regexCost is what it costs to look for a regular expression.
func regexCost(args []ref.Val) float64 {
	regex := text(args, 1)
	if !small(regex) {
		return math.Inf(1)
	}
	return perByte * float64(1+len(text(args, 0))) * max(perRegexByte*float64(len(regex)), 1)
}

// small reports whether a regular expression is compiled to a program that isn't large.
func small(regex string) bool {
	if len(regex) > mostRegexParts {
		return false
	}
	parsed, err := syntax.Parse(regex, syntax.Perl)
	return err != nil || parts(parsed) <= mostRegexParts // What is no expression is refused by anyone who compiles it.
}

// parts counts what the parts of a regular expression are compiled to.
func parts(regex *syntax.Regexp) int {
	n := 1 + len(regex.Rune)
	for _, sub := range regex.Sub {
		n += parts(sub)
	}
	if regex.Op == syntax.OpRepeat {
		n *= max(regex.Min, regex.Max, 1)
	}
	return n
}
