package lockmgr

import (
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"

	"janus.io/janus/internal/objectid"
)

const (
	// maxLeaseName is the longest name of a Lease, which is a DNS subdomain
	// (RFC 1123). The shorter limit of a label, 63, would cut most names of
	// targets, and a Lease's name is nowhere used as a label.
	maxLeaseName = 253

	// hashLength is the number of base32 digits that end a Lease's name:
	// 50 bits. Two targets that collide would only wait for each other.
	hashLength = 10
)

// A Key names a target: what it is, and what its Lease is called.
type Key struct {
	objectid.ID
	// Kind makes the name of the Lease readable. It is no part of the identity
	// but of the Lease's name, so it must be the one kind that discovery returns
	// for Group and Resource.
	Kind string
	// Shared is set for a lock that is held together with others whose Key is Shared, and to the
	// exclusion of all whose Key is not. It is no part of the identity.
	Shared bool
}

// Less says whether the lock of k is taken before that of other. It is a total
// order on the identity.
func (k Key) Less(other Key) bool { return k.compare(other) < 0 }

func (k Key) compare(other Key) int { return k.Compare(other.ID) }

// LeaseName is the name of the Lease that locks the target:
// janus-lock-{namespace}-{kind}-{name}, without the namespace if there is none,
// and a hash of the identity. The readable part is in lower case, has '-' for
// whatever else is illegal in a label and for '.', and is cut to fit; that
// makes it ambiguous, and the hash makes the name unique.
func (k Key) LeaseName() string {
	readable := hyphenate("janus-lock", k.Namespace, k.Kind, k.Name)
	if longest := maxLeaseName - hashLength - 1; len(readable) > longest {
		readable = strings.TrimRight(readable[:longest], "-")
	}
	return readable + "-" + k.hash()
}

// hash is a short hash of the identity. No part of an identity may contain a
// zero byte, so the zero bytes keep the parts apart.
func (k Key) hash() string {
	return shortHash(strings.Join([]string{k.Group, k.Resource, k.Namespace, k.Name}, "\x00"))
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:hashLength]
}

// hyphenate joins the parts in lower case with '-', and puts one '-' in the
// place of each run of characters other than letters and digits of ASCII.
func hyphenate(parts ...string) string {
	illegal := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	words := strings.FieldsFunc(strings.ToLower(strings.Join(parts, "-")), illegal)
	return strings.Join(words, "-")
}

// inOrder returns the keys in the order in which locks are taken, each
// identity once: one that is not shared stands for those that are.
func inOrder(keys []Key) []Key {
	sorted := slices.SortedStableFunc(slices.Values(keys), func(a, b Key) int {
		if c := a.compare(b); c != 0 || a.Shared == b.Shared {
			return c
		}
		if b.Shared {
			return -1
		}
		return 1
	})
	return slices.CompactFunc(sorted, func(a, b Key) bool { return a.compare(b) == 0 })
}
