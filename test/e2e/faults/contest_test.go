package faults

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
)

// race is a contest: Transactions that want the same targets at the same time, each in
// an order of its own, to change them or to be guarded by them. Its name says all about it.
type race struct {
	name string
	// orders are the positions of targets in things, by Transaction.
	orders [][]int
	// guards are the positions of the targets that each Transaction is guarded by, if any.
	guards [][]int
	// refused are the Transactions that are refused when they commit.
	refused   map[int]bool
	processes int
}

// things are the targets of contests.
var things = []struct{ kind, version, name string }{
	{"ConfigMap", "v1", "a"}, {"Secret", "v1", "b"}, {"Widget", "faults.example.com/v1", "c"}, {"ConfigMap", "v1", "d"},
}

const contestPrefix = "contest-"

func isContest(workload string) bool { return strings.HasPrefix(workload, contestPrefix) }

// permutations of three targets.
var permutations = [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}

// contestNumbered returns the name of the contest with a number: in turn, two
// Transactions in one of all 36 orders with one process of Janus, the same with two
// processes, and three or four Transactions that the seed draws.
func contestNumbered(n int, seed int64) string {
	if n%3 == 2 {
		return fmt.Sprintf("%s%d.%d", contestPrefix, seed, n)
	}
	// The first few are in opposite orders; 108 numbers have them all.
	orders := (n/3 + 1) * 5 % (len(permutations) * len(permutations))
	name := contestPrefix
	for _, order := range [][]int{permutations[orders/len(permutations)], permutations[orders%len(permutations)]} {
		name += strings.Trim(fmt.Sprint(order), "[]") + "-"
	}
	return strings.ReplaceAll(name, " ", "") + strconv.Itoa(1+n%3)
}

// contestOf returns the contest of a name.
func contestOf(name string) race {
	rest := strings.TrimPrefix(name, contestPrefix)
	r := race{name: name, refused: map[int]bool{}}
	if parts := strings.Split(rest, "-"); len(parts) == 3 {
		for _, part := range parts[:2] {
			var order []int
			for _, digit := range part {
				order = append(order, int(digit-'0')%len(things))
			}
			r.orders = append(r.orders, order)
		}
		r.processes, _ = strconv.Atoi(parts[2])
		return r
	}
	random := rand.New(rand.NewPCG(hash(rest), 0)) //nolint:gosec // the name is what makes it repeatable
	targets := 3 + random.IntN(2)
	for n := range 3 + random.IntN(2) {
		r.orders = append(r.orders, random.Perm(targets)[:2+random.IntN(targets-1)])
		r.refused[n] = random.IntN(4) == 0
	}
	r.processes = 1 + random.IntN(2)
	for range r.orders {
		r.guards = append(r.guards, random.Perm(targets)[:random.IntN(targets)])
	}
	return r
}

// row is where the contest counts in the table.
func (r race) row() string {
	return fmt.Sprintf("%d Transactions, %d at work", len(r.orders), r.processes)
}

// workload makes a workload of the contest.
func (r race) workload() workload {
	w := workload{Name: r.name, Canary: "canary-7f3a", Processes: r.processes}
	for i := range things {
		object := named(i)
		object["metadata"] = map[string]any{"name": things[i].name}
		for key, value := range content(i, "old") {
			object[key] = value
		}
		w.Objects = append(w.Objects, object)
	}
	for n, order := range r.orders {
		var changes []map[string]any
		for _, i := range r.guardsOf(n) {
			object := named(i)
			object["name"] = things[i].name
			changes = append(changes, map[string]any{
				"target": object, "type": api.Await, "guard": true, "readyWhen": map[string]any{"expression": "object != null"},
			})
		}
		for k, i := range order {
			object := named(i)
			object["name"] = things[i].name
			changes = append(changes, map[string]any{
				"target": object, "type": []api.ChangeType{api.Patch, api.Update}[(n+k)%2], "content": content(i, fmt.Sprintf("new-%d", n)),
			})
		}
		if r.refused[n] {
			changes = append(changes, refused)
		}
		w.Contenders = append(w.Contenders, changes)
	}
	return w
}

func (r race) guardsOf(n int) []int {
	if n >= len(r.guards) {
		return nil
	}
	return r.guards[n]
}

func named(i int) map[string]any {
	return map[string]any{"apiVersion": things[i].version, "kind": things[i].kind}
}

// content is what a Transaction writes to a target: a field that they all write.
func content(i int, value string) map[string]any {
	switch things[i].kind {
	case "Secret":
		return map[string]any{"stringData": map[string]any{"key": "canary-7f3a-" + value}}
	case "Widget":
		return map[string]any{"spec": map[string]any{"size": 1 + hash(value)%1000}}
	default:
		return map[string]any{"data": map[string]any{"key": value}}
	}
}

// wanted are the ends of the Transactions: none of them starves.
func (r race) wanted() []string {
	var out []string
	for n := range r.orders {
		phase := api.PhaseCommitted
		if r.refused[n] {
			phase = api.PhaseRolledBack
		}
		out = append(out, string(phase))
	}
	return out
}

// TestContestsHaveEveryOrder looks that the numbers of contests have all orders of two
// Transactions, with one process and with two, and that a name says what a number does.
func TestContestsHaveEveryOrder(t *testing.T) {
	pairs := map[string]bool{}
	for n := range 108 {
		name := contestNumbered(n, 1)
		r := contestOf(name)
		assert.True(t, isContest(r.name))
		assert.Equal(t, r.workload(), contestOf(name).workload())
		if len(r.orders) == 2 {
			pairs[fmt.Sprint(r.orders, r.processes)] = true
		}
	}
	assert.Len(t, pairs, 2*36)
}
