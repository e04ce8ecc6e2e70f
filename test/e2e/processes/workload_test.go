package processes

import (
	"fmt"
	"math/rand/v2"
	"slices"

	api "janus.io/janus/api/v1alpha1"
)

// The values of Secrets that must appear nowhere else: one that was there before,
// and one that a Transaction writes, which is in its spec too.
const (
	oldCanary = "canary-old-5f0e7c1d9a"
	newCanary = "canary-new-b83c2e6f47"
)

// hots are ConfigMaps that many Transactions want at once, each for a key of its own.
var hots = []string{"hot-0", "hot-1", "hot-2"}

// saga is a Transaction and what it is to do.
type saga struct {
	name    string
	account string
	// noisy says that the foreign writer writes to its targets.
	noisy bool
	// refused says that one of its changes is refused while it commits.
	refused bool
	targets []*target
	hots    []string
	spec    map[string]any
}

// key is the key of a saga in the hot ConfigMaps.
func (s *saga) key() string { return s.name }

// newSaga makes up the n-th Transaction.
func newSaga(r *rand.Rand, namespace string, n int, lockTimeout string) *saga {
	s := &saga{
		name: fmt.Sprintf("txn-%04d", n), account: accounts[r.IntN(len(accounts))],
		noisy: r.IntN(100) < 40, refused: r.IntN(100) < 35,
	}
	for _, make := range makers {
		if r.IntN(100) < make.percent {
			s.targets = append(s.targets, make.target(namespace, s.name))
		}
	}
	if len(s.targets) == 0 {
		s.targets = append(s.targets, patched(namespace, s.name))
	}
	if s.refused {
		name := "refused-" + s.name
		refused := &target{kind: configMap, name: name}
		s.targets = append(s.targets, refused.add("Create", data("a", "b"), func(map[string]any) map[string]any { return nil }))
	}
	for _, hot := range hots {
		if r.IntN(100) < 40 {
			s.hots = append(s.hots, hot)
		}
	}
	s.spec = map[string]any{
		"serviceAccountName": s.account, "lockTimeout": lockTimeout, "timeout": "2h", "changes": s.changes(r),
	}
	return s
}

// changes puts the changes in a random order; those of one target stay in theirs.
func (s *saga) changes(r *rand.Rand) []any {
	var queues [][]map[string]any
	for _, t := range s.targets {
		queues = append(queues, t.changes)
	}
	for _, hot := range s.hots {
		t := &target{kind: configMap, name: hot}
		queues = append(queues, t.add("Patch", data(s.key(), "yes"), nil).changes)
	}
	var out []any
	for len(queues) > 0 {
		i := r.IntN(len(queues))
		out = append(out, queues[i][0])
		if queues[i] = queues[i][1:]; len(queues[i]) == 0 {
			queues = slices.Delete(queues, i, i+1)
		}
	}
	return out
}

// makers make the targets that a saga may have, and say how often it does.
var makers = []struct {
	percent int
	target  func(namespace, saga string) *target
}{
	{60, patched}, {60, updated}, {60, created}, {40, deleted}, {30, patchedTwice},
	{50, patchedSecret}, {40, deletedSecret}, {30, createdSecret}, {40, rolledOut},
}

func data(key, value string) map[string]any {
	return map[string]any{"data": map[string]any{key: value}}
}

func patched(_, saga string) *target {
	name := saga + "-patched"
	t := &target{kind: configMap, name: name, initial: object(configMap, name, map[string]any{"data": map[string]any{"v": "1", "kept": "kept"}})}
	return t.add(string(api.Patch), data("v", "2"), setting("2", "data", "v"))
}

func patchedTwice(_, saga string) *target {
	name := saga + "-twice"
	t := &target{kind: configMap, name: name, initial: object(configMap, name, map[string]any{"data": map[string]any{"v": "1", "w": "1"}})}
	return t.add(string(api.Patch), data("v", "2"), setting("2", "data", "v")).
		add(string(api.Patch), data("new", "3"), setting("3", "data", "new"))
}

func updated(namespace, saga string) *target {
	name := saga + "-updated"
	initial := object(configMap, name, map[string]any{"data": map[string]any{"a": "1", "b": "1"}})
	initial.SetAnnotations(map[string]string{"note": "old"})
	t := &target{kind: configMap, name: name, initial: initial}
	content := map[string]any{"data": map[string]any{"a": "2", "c": "2"}}
	return t.add(string(api.Update), content, replacing(configMap, namespace, name, content))
}

func created(namespace, saga string) *target {
	name := saga + "-created"
	t := &target{kind: configMap, name: name}
	return t.add(string(api.Create), data("made", "yes"), replacing(configMap, namespace, name, data("made", "yes")))
}

func deleted(_, saga string) *target {
	name := saga + "-deleted"
	t := &target{kind: configMap, name: name, initial: object(configMap, name, data("v", "1"))}
	return t.add(string(api.Delete), nil, removing)
}

func patchedSecret(_, saga string) *target {
	name := saga + "-secret"
	t := &target{kind: secret, name: name, initial: object(secret, name, map[string]any{
		"type": "Opaque", "data": map[string]any{"old": encoded(oldCanary), "changed": encoded(oldCanary)},
	})}
	return t.add(string(api.Patch), data("changed", encoded(newCanary)), setting(encoded(newCanary), "data", "changed"))
}

func deletedSecret(_, saga string) *target {
	name := saga + "-dropped"
	t := &target{kind: secret, name: name, initial: object(secret, name, map[string]any{
		"type": "Opaque", "data": map[string]any{"old": encoded(oldCanary)},
	})}
	return t.add(string(api.Delete), nil, removing)
}

func createdSecret(namespace, saga string) *target {
	name := saga + "-minted"
	content := map[string]any{"type": "Opaque", "data": map[string]any{"new": encoded(newCanary)}}
	t := &target{kind: secret, name: name}
	return t.add(string(api.Create), content, replacing(secret, namespace, name, content))
}

// rolledOut is a Deployment without replicas: its controller writes to it all the
// same.
func rolledOut(_, saga string) *target {
	name := saga + "-web"
	labels := map[string]any{"app": name}
	container := func(image string) map[string]any { return map[string]any{"name": "web", "image": image} }
	t := &target{kind: deployment, name: name, initial: object(deployment, name, map[string]any{"spec": map[string]any{
		"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{container("example.com/web:1")}},
		},
	}})}
	content := map[string]any{"spec": map[string]any{
		"template": map[string]any{"spec": map[string]any{"containers": []any{container("example.com/web:2")}}},
	}}
	return t.add(string(api.Patch), content, func(obj map[string]any) map[string]any {
		out := setting("unused", "metadata", "unused")(obj)
		delete(out["metadata"].(map[string]any), "unused")
		template := out["spec"].(map[string]any)["template"].(map[string]any)
		template["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["image"] = "example.com/web:2"
		return out
	})
}
