package revision

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"janus.io/janus/api/v1alpha1"
)

// Revision is what is remembered of a committed Transaction.
type Revision struct {
	// Format is the number of the encoding: a newer Janus has to tell what it reads.
	Format int `json:"format"`
	// Transaction is the one that is remembered.
	Transaction Owner `json:"transaction"`
	// ServiceAccount is the one that it has acted as.
	ServiceAccount string `json:"serviceAccountName"`
	// Images names the objects that hold the before-images.
	Images v1alpha1.RollbackRef `json:"rollbackRef"`
	// Items are the changes, in the order in which they were made.
	Items []Item `json:"items"`
}

// Owner is the Transaction that a revision belongs to, in the namespace of both.
type Owner struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// Item is what is remembered of one change.
type Item struct {
	// Index is its position among the items of the Transaction.
	Index  int                 `json:"index"`
	Name   string              `json:"name"`
	Type   v1alpha1.ChangeType `json:"type"`
	Target v1alpha1.Target     `json:"target"`
	// Before says where the before-image is, with the uid of the target.
	Before *v1alpha1.BeforeImage `json:"before,omitempty"`
	// Set is the SHA-256 of the content of the change; empty for a Delete and for kinds
	// whose content is confidential.
	Set string `json:"set,omitempty"`
	// Confidential is set if the content came from a Secret: neither are values of it shown
	// by what undoes the change.
	Confidential bool `json:"confidential,omitempty"`
}

const format = 1

// errNotARevision quotes nothing of what was read.
var errNotARevision = errors.New("not a revision of a format that this version of Janus knows")

// Encode returns the bytes of a revision, the same for the same revision.
func Encode(r Revision) ([]byte, error) {
	r.Format = format
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode a revision: %w", err)
	}
	return data, nil
}

// sorted is what Encode returns, in the order in which the API server writes it itself. It
// lets nobody change the data of a ControllerRevision, and takes another order for a
// change: it would refuse every patch, even that by which the garbage collector takes the
// owner off, and who deletes a Transaction with propagation Orphan would wait for ever.
func sorted(r Revision) ([]byte, error) {
	data, err := Encode(r)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := utiljson.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("sort a revision: %w", err)
	}
	if data, err = json.Marshal(fields); err != nil {
		return nil, fmt.Errorf("sort a revision: %w", err)
	}
	return data, nil
}

// Decode reads what Encode has written.
func Decode(data []byte) (Revision, error) {
	var r Revision
	if err := json.Unmarshal(data, &r); err != nil || r.Format != format || r.Transaction.UID == "" {
		return Revision{}, errNotARevision
	}
	return r, nil
}

// Digest names the content of a revision. The API server stores it as JSON and may
// write it in another way, so it is taken of what was read from it.
func Digest(r Revision) (string, error) {
	data, err := Encode(r)
	if err != nil {
		return "", err
	}
	return sum(data), nil
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(digest[:])
}

// SetBy is the digest of the content of a change: the same for all that mean the same,
// in whatever order it is written.
func SetBy(content map[string]any) (string, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("encode the content of a change: %w", err)
	}
	return sum(data), nil
}

// Changes is a short name of what a revision does, the same for two that make the same
// changes to the same objects in the same order: names of changes, the Transaction, its
// ServiceAccount and what the objects were before make no difference.
func Changes(r Revision) (string, error) {
	type change struct {
		Type   v1alpha1.ChangeType
		Target v1alpha1.Target
		Set    string
	}
	changes := make([]change, len(r.Items))
	for i, item := range r.Items {
		changes[i] = change{item.Type, item.Target, item.Set}
	}
	data, err := json.Marshal(changes)
	if err != nil {
		return "", fmt.Errorf("encode the changes of a revision: %w", err)
	}
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:8]), nil
}

const prefix = "janus-revision-"

// Name is the name of the revision with a number.
func Name(number int64) string { return prefix + strconv.FormatInt(number, 10) }

// numberOf reads the number off a name, 0 if it is none of a revision.
func numberOf(name string) int64 {
	digits, found := strings.CutPrefix(name, prefix)
	number, err := strconv.ParseInt(digits, 10, 64)
	if !found || err != nil || number < 1 || Name(number) != name {
		return 0
	}
	return number
}
