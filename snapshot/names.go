package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/api/v1alpha1"
)

// Finalizer keeps an object with before-images until Janus lets go: a foreground
// deletion of a Transaction collects what it owns although a finalizer still
// holds the Transaction itself.
const Finalizer = "backup.janus.io/before-image"

const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "janus"
	// annotationBatch says which objects one Save wrote together, see batch.
	annotationBatch = "janus.io/rollback-batch"

	maxName  = 253
	maxLabel = 63
)

// kind is what before-images are stored in.
type kind string

const (
	configMaps kind = "ConfigMap"
	secrets    kind = "Secret"
)

var kinds = []kind{configMaps, secrets}

func (k kind) resource() string { return strings.ToLower(string(k)) + "s" }

// Owner is the Transaction that before-images belong to.
type Owner struct {
	Namespace, Name string
	UID             types.UID
}

// objectName is the name of the n-th object of a Transaction, counted from 1.
func objectName(transaction string, n int) string {
	suffix := "-rollback"
	if n > 1 {
		suffix += "-" + strconv.Itoa(n)
	}
	return shorten(transaction, maxName-len(suffix)) + suffix
}

// shorten cuts a name that is too long and makes up for it with a hash.
func shorten(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:5])
	// A name must not have "." next to "-".
	return strings.TrimRight(name[:limit-len(hash)-1], "-.") + "-" + hash
}

// place is an object by its kind and its number.
type place struct {
	kind   kind
	number int
}

// entry is the object as RollbackRef.Objects lists it.
func (p place) entry(transaction string) string {
	return string(p.kind) + "/" + objectName(transaction, p.number)
}

// listed returns the objects that ref lists. An entry that is not the name of a
// before-image of this Transaction is left out: the status can be written by
// others, and must not direct Janus to any other object.
func listed(transaction string, ref *v1alpha1.RollbackRef) []place {
	if ref == nil {
		return nil
	}
	var out []place
	for _, entry := range ref.Objects {
		k, name, _ := strings.Cut(entry, "/")
		p := place{kind: kind(k), number: numberOf(name)}
		if slices.Contains(kinds, p.kind) && p.entry(transaction) == entry {
			out = append(out, p)
		}
	}
	return out
}

// NamesNone reports whether a status names no before-image, as where there is none, or where no change
// has come to one.
func NamesNone(ref *v1alpha1.RollbackRef) bool { return ref == nil || len(ref.Objects) == 0 }

// numberOf reads the number off the name of an object. The name of the
// Transaction may look like a number too, so the caller checks the whole name.
func numberOf(name string) int {
	digits, found := afterLast(name, "-rollback-")
	if !found {
		return 1
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 1
	}
	return n
}

// afterLast is what follows the last sep in s.
func afterLast(s, sep string) (after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", false
	}
	return s[i+len(sep):], true
}

// last is the highest number of a kind among places, 0 for none.
func last(places []place, k kind) int {
	highest := 0
	for _, p := range places {
		if p.kind == k {
			highest = max(highest, p.number)
		}
	}
	return highest
}
