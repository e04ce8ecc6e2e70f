package expression_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/internal/expression"
)

// full is an object as large as etcd takes: one long text, and many keys.
func full(keys int) map[string]any {
	data := map[string]any{"s": strings.Repeat("a", 680_000), "t": strings.Repeat("a", 679_999) + "b"}
	for i := range keys {
		data[fmt.Sprintf("key-%d", i)] = "v"
	}
	list := make([]any, keys)
	for i := range list {
		list[i] = int64(i)
	}
	return map[string]any{
		"data": data, "list": list, "many": int64(1_000_000_000), "url": "https://example.com/" + strings.Repeat("a", 50_000),
		"regex": `((ab){30}){30}`, "digits": strings.Repeat("9", 680_000),
		"half": strings.Repeat("a", 340_000) + "b", "exponent": "1e2000000000", "fraction": "1e-2000000000",
	}
}

// two is a list of many texts that are long, and that differ at their end.
const two = `object.data.map(k, k.size() % 2 == 0 ? object.data.s : object.data.t)`

// Nothing that is in an object makes an evaluation expensive: each call is charged by what it is
// given, before it is made where it may make much of little, whatever its types.
func TestAnEvaluationIsBounded(t *testing.T) {
	for _, text := range []string{
		`object.data.map(k, object.data.s + object.data.s)`,
		`object.data.map(k, bytes(object.data.s))`,
		`object.data.map(k, string(bytes(object.data.s)))`,
		`object.data.map(k, "%s%s".format([object.data.s, object.data.s]))`,
		`object.data.map(k, isURL(object.url))`,
		`object.data.map(k, url(object.url))`,
		`object.data.map(k, object == object)`,
		`object.data.map(k, object != object)`,
		`object.data.map(k, object in [object])`,
		`object.data.map(k, object.data.s < object.data.s)`,
		`object.data.map(k, object.data.s.upperAscii())`,
		`object.data.map(k, object.data.s.contains("b"))`,
		`object.data.map(k, object.data.s.matches("(a+)+b"))`,
		`object.data.map(k, [object.data.s, object.data.s].join(","))`,
		`object.data.map(k, strings.quote(object.data.s))`,
		`object.data.map(k, object.data.s.findAll("a"))`,
		`object.data.s.replace("a", object.data.s)`,
		`object.data.s.replace("", object.data.s)`,
		`object.data.s.split("").join(object.data.s)`,
		`object.data.s.split("").distinct()`,
		`object.data.s.split("").map(c, object.data.s)`,
		two + `.sort()`,
		`[` + two + `.min()]`,
		two + `.distinct()`,
		`[sets.contains(` + two + `.slice(0, 2000), ` + two + `.slice(0, 2000))]`,
		`[` + two + `.indexOf("x")]`,
		`[object.data.s in ` + two + `]`,
		`[` + two + ` == ` + two + `]`,
		`[sets.contains(object.data.s.split(""), object.data.s.split(""))]`,
		`[sets.intersects(object.data.s.split(""), ["b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q"])]`,
		`lists.range(object.many)`,
		`lists.range(1000000000)`,
		`lists.range(20000000)`,
		`[1].map(a, [a, a] + [a, a])` + strings.Repeat(`.map(l, l + l)`, 40) + `.map(l, l.sort())`,
		`[1].map(a, [a, a] + [a, a])` + strings.Repeat(`.map(l, l + l)`, 40) + `.map(l, l == l)`,
		`[1].map(a, [a, a] + [a, a])` + strings.Repeat(`.map(l, l + l)`, 40) + `.map(l, 2 in l)`,
		`["a"].map(a, a)` + strings.Repeat(`.map(l, l + l)`, 40),
		`[object.data.s.matches(object.regex)]`,
		`[object.data.s.find(object.regex)]`,
		`[quantity(object.digits)]`,
		`[object.data.s.indexOf(object.half)]`,
		`[object.data.s.lastIndexOf(object.half)]`,
		`[quantity(object.exponent).isGreaterThan(quantity("1"))]`,
		`[isQuantity(object.fraction)]`,
		`object.data.map(k, object.data.map(l, object.data.map(m, 1)))`,
		`[object.data.map(k, object.list).max()]`,
	} {
		t.Run(text[:min(len(text), 60)], func(t *testing.T) {
			e, err := expression.Compile(text + `.size() > 0`)
			require.NoError(t, err)
			own := full(20_000)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = e.Evaluate(t.Context(), own, nil)
			runtime.ReadMemStats(&after)
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "aaaa")
			assert.Regexp(t, "it costs more than an expression may|it takes longer than", err.Error())
			// What is allocated in all is more than what is in use at any time.
			assert.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(256), "MiB")
		})
	}
}

// What people write costs little, on a large object too.
func TestAnEvaluationThatComparesLittleIsCheap(t *testing.T) {
	for _, text := range []string{
		`object.data.s.size() == 680000`,
		`object.data["key-7"] == "v" && object.data.s.startsWith("aaa")`,
		`"key-7" in object.data`,
		`object.data.exists(k, k == "key-7")`,
		`object.data.map(k, k).filter(k, k.startsWith("key-")).map(k, k + "!").size() == 1000`,
		`object.data.map(k, k).sort()[0] == "key-0" && object.data.map(k, k).indexOf("s") >= 0`,
		`optional.of(object).orValue({}).data.size() == 1002`,
		`object.data["key-7"].matches("^v{1,3}$")`,
		`object.data == object.data`,
		`quantity("1Gi").isGreaterThan(quantity("1Mi")) && quantity("2e3") == quantity("2k") && quantity("1E").isInteger()`,
		`!isQuantity("node2099") && semver("1.0.0-e2000").major() == 1`,
		`object.data.t.indexOf("ab") == 679998 && object.data.t.lastIndexOf("aaab") == 679996`,
		`"1,2,3".split(",").map(n, int(n)).sum() == 6 && [3, 1, 2].sort() == lists.range(3).map(i, i + 1)`,
		`"a-b".replace("-", ".") == "a.b" && ["a", "b"].join("-") == "a-b" && [1, 1].distinct() == [1]`,
		`sets.contains([1, 2], [1]) && !sets.intersects([1], [2]) && sets.equivalent([1, 2], [2, 1])`,
		`"%s is %d".format(["x", 1]) == "x is 1" && !(1 in [2]) && 1.0 == double(1) && "a" != "b"`,
		`isURL("https://example.com/a") && url("https://example.com/a").getHost() == "example.com"`,
		`ip("10.0.0.1").family() == 4 && cidr("10.0.0.0/8").containsIP("10.0.0.1") && timestamp("2026-01-01T00:00:00Z") < timestamp("2026-01-02T00:00:00Z")`,
		`optional.of(1).hasValue() && object.?none.orValue("x") == "x" && duration("1m") > duration("1s") && semver("1.2.3").major() == 1`,
	} {
		t.Run(text, func(t *testing.T) {
			e, err := expression.Compile(text)
			require.NoError(t, err)
			got, err := e.Evaluate(t.Context(), full(1000), nil)
			require.NoError(t, err)
			assert.True(t, got)
		})
	}
}

func TestALargeRegularExpressionIsRefused(t *testing.T) {
	for _, regex := range []string{`((ab){30}){30}`, strings.Repeat("a", 1001)} {
		_, err := expression.Compile(`object.data.s.matches("` + regex + `")`)
		require.ErrorContains(t, err, "a regular expression in it has more than 1000 parts")
	}
}

func TestAnEvaluationEndsWithItsContext(t *testing.T) {
	e, err := expression.Compile(`object.data.map(k, 1).size() > 0`)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = e.Evaluate(ctx, full(20_000), nil)
	require.ErrorIs(t, err, context.Canceled)
}
