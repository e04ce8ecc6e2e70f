package compile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/packages/change"
	"janus.io/janus/packages/image"
	"janus.io/janus/packages/installed"
)

// Options are what a Transaction has beside the change.
type Options struct {
	Namespace      string
	ServiceAccount string
	// LockNamespace is where the ConfigMap is that serializes Transactions.
	LockNamespace string
	// PackageTimeout is how long a package may take to become healthy.
	PackageTimeout api.Duration
	// Timeout is how long all of it may take.
	Timeout api.Duration
	// AcceptLoss deletes packages with custom resources that come while it runs.
	AcceptLoss bool
	// Labels are put on the packages that are created or changed.
	Labels map[string]string
}

// lockName is the name of the ConfigMap.
const lockName = "janus-packages"

// settled is how long a package must say without a break that it works again, in a rollback:
// for a moment it tells of its revision what that said when it was last active.
const settled api.Duration = "2s"

// Transaction compiles a change.
func Transaction(c change.Change, o Options) (*api.Transaction, error) {
	b := &building{options: o, change: c}
	b.lock()
	switch c.Type {
	case change.Install:
		for _, s := range c.Steps {
			b.install(s)
		}
		b.noted()
	case change.Delete:
		b.remove()
	case change.Replace:
		b.replace()
		b.noted()
	default:
		return nil, fmt.Errorf("change of type %q is none", c.Type)
	}
	if b.err != nil {
		return nil, b.err
	}
	t := &api.Transaction{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: api.Kind.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace},
		Spec:       api.TransactionSpec{ServiceAccountName: o.ServiceAccount, Changes: b.changes, Order: api.OrderList, Timeout: &o.Timeout},
	}
	t.Name = name(c, t)
	return t, nil
}

// name is the same for the same change of the same state: what is created twice is made once.
// After any change of a package that it is about it is another.
func name(c change.Change, t *api.Transaction) string {
	content, _ := json.Marshal(t.Spec)
	hash := sha256.New()
	hash.Write(content)
	for _, s := range c.Steps {
		if s.Existing != nil {
			_, _ = fmt.Fprintf(hash, "%s %d\n", s.Existing.UID, s.Existing.Generation)
		}
	}
	const longest = 40
	root := image.Name(c.Root)
	return strings.ToLower(string(c.Type)) + "-" + strings.TrimRight(root[:min(longest, len(root))], "-") + "-" + hex.EncodeToString(hash.Sum(nil))[:8]
}

// building collects the changes of a Transaction.
type building struct {
	options Options
	change  change.Change
	changes []api.Change
	names   map[string]bool
	err     error
}

// add adds a change under a name that no other has.
func (b *building) add(name string, c api.Change) {
	const longest = 63
	if b.names == nil {
		b.names = map[string]bool{}
	}
	// The name of a package may have dots, and that of a change may not.
	name = strings.Trim(strings.ReplaceAll(name[:min(longest-3, len(name))], ".", "-"), "-")
	c.Name = name
	for n := 2; b.names[c.Name]; n++ {
		c.Name = fmt.Sprintf("%s-%d", name, n)
	}
	b.names[c.Name] = true
	b.changes = append(b.changes, c)
}

func (b *building) content(content map[string]any) *runtime.RawExtension {
	raw, err := json.Marshal(content)
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("encode the content of a change: %w", err)
	}
	return &runtime.RawExtension{Raw: raw}
}

func packageTarget(kind image.Kind, name string) api.Target {
	return api.Target{APIVersion: installed.Group + "/" + installed.Version, Kind: string(kind), Name: name}
}

func revisionTarget(kind image.Kind, name string) api.Target {
	return packageTarget(kind+"Revision", name)
}

var lockTarget = api.Target{APIVersion: installed.Group + "/v1beta1", Kind: "Lock", Name: installed.LockName}

func (b *building) ready(expression string) *api.ReadyWhen {
	return &api.ReadyWhen{Expression: expression, Timeout: &b.options.PackageTimeout}
}

// lock takes the lock of all changes of packages, and waits for the state that was planned
// with. The ConfigMap is made by the first Transaction; the others lock it all the same.
func (b *building) lock() {
	b.add("lock", api.Change{
		Type: api.Create, When: "object == null",
		Target:  api.Target{APIVersion: "v1", Kind: "ConfigMap", Namespace: b.options.LockNamespace, Name: lockName},
		Content: b.content(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"janus.io/about": "Transactions that change packages lock this object, so that there is one at a time."}}}),
	})
	planned := strconv.FormatInt(b.change.State.Lock.Generation, 10)
	b.add("as-planned", api.Change{
		Type: api.Await, Target: lockTarget,
		ReadyWhen: b.ready(`object.metadata.generation == ` + planned),
		FailWhen: &api.FailWhen{
			Expression:        `object == null || object.metadata.generation != ` + planned,
			MessageExpression: quoted("the packages have changed since the plan was made: plan again"),
		},
	})
}

// noted waits until Crossplane has the whole change in its Lock.
func (b *building) noted() {
	const most = 5
	for steps := range slices.Chunk(b.change.Steps, most) {
		parts := []string{}
		for _, s := range steps {
			if s.Goes() {
				parts = append(parts, `(!has(object.packages) || !object.packages.exists(p, p.source == `+quoted(s.Source)+`))`)
				continue
			}
			parts = append(parts, `object.packages.exists(p, p.name == `+quoted(s.Revision)+` && p.version == `+quoted(s.To)+`)`)
		}
		b.add("noted", api.Change{Type: api.Await, Target: lockTarget, ReadyWhen: b.ready(strings.Join(parts, " && "))})
	}
}
