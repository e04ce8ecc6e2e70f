package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/target"
)

// Record is what is kept of one item.
type Record struct {
	// Item is the index of the item.
	Item int `json:"item"`
	// Type is the type of the change.
	Type string `json:"type"`
	// Target is what the item changes.
	Target target.Ref `json:"target"`
	// Before is the target at prepare; nil when it did not exist. It is kept
	// whole: managedFields, uid and resourceVersion are needed to restore.
	Before *unstructured.Unstructured `json:"before,omitempty"`
	// After is what a dry run of the change gave, stripped. Nil for a Delete, and
	// where the change could not be tried.
	After *unstructured.Unstructured `json:"after,omitempty"`
	// Content is that of the change, where it is not in the spec of the Transaction but
	// follows from what that undoes.
	Content map[string]any `json:"content,omitempty"`
	// Took is what a dry run of the change took from other owners.
	Took []metav1.ManagedFieldsEntry `json:"took,omitempty"`
	// Owners are who is to own the fields after the commit of what undoes another change:
	// who owned them before that.
	Owners []metav1.ManagedFieldsEntry `json:"owners,omitempty"`
	// Release is what a Patch, whose content are fields as they were, releases with the commit.
	Release *fieldmerge.Release `json:"release,omitempty"`
	// FieldManager is the manager to which a commit leaves what nobody owned, if one was named.
	FieldManager string `json:"heir,omitempty"`
	// Confidential has the record kept in a Secret, whatever the kind of the target is. It
	// is no part of the encoding: of a record that was loaded, it says where that was.
	Confidential bool `json:"-"`
}

// format is the number of the encoding. Records outlive the process that wrote
// them, and a newer Janus has to tell what it reads.
const format = 1

// document is the encoding of a Record.
type document struct {
	Format int            `json:"format"`
	Item   int            `json:"item"`
	Type   string         `json:"type"`
	Target target.Ref     `json:"target"`
	Before map[string]any `json:"before,omitempty"`
	// After is the whole object, AfterPatch the JSON merge patch that makes it
	// from Before. At most one of them is there. The patch starts from Before as
	// it is stored, not from Strip of it, so that the meaning of stored bytes
	// never depends on what Strip does in another version of Janus.
	After      map[string]any `json:"after,omitempty"`
	AfterPatch map[string]any `json:"afterPatch,omitempty"`
	// Unchanged says that After equals Before, for which the patch is empty.
	Unchanged    bool                        `json:"unchanged,omitempty"`
	Content      map[string]any              `json:"content,omitempty"`
	Took         []metav1.ManagedFieldsEntry `json:"took,omitempty"`
	Owners       []metav1.ManagedFieldsEntry `json:"owners,omitempty"`
	Release      *fieldmerge.Release         `json:"release,omitempty"`
	FieldManager string                      `json:"heir,omitempty"` // The key is that of stored records.
	// Nonce keeps the digest from telling what is confidential. It is no part of the Record, and
	// a Janus that does not know it reads the rest.
	Nonce string `json:"nonce,omitempty"`
}

var (
	errEmptyImage = errors.New("an image has no content")
	errNotARecord = errors.New("not a record of a format that this version of Janus knows")
)

// Encode returns the bytes of a record: valid UTF-8 JSON, and always the same for
// the same record, because keys are sorted. Integers stay integers, and explicit
// nulls survive.
//
// HTML characters are escaped, as the JSON package does by default. Raw, each
// would take six bytes once a ConfigMap is itself sent as JSON, and a full one
// would exceed the limit of a request.
func Encode(r Record) ([]byte, error) {
	d, err := documentOf(r)
	if err != nil {
		return nil, err
	}
	return json.Marshal(d)
}

func documentOf(r Record) (document, error) {
	d := document{Format: format, Item: r.Item, Type: r.Type, Target: r.Target, Content: r.Content, Took: r.Took, Owners: r.Owners, Release: r.Release, FieldManager: r.FieldManager}
	if r.Before != nil {
		if len(r.Before.Object) == 0 {
			return document{}, errEmptyImage
		}
		d.Before = r.Before.Object
	}
	if r.After != nil {
		if len(r.After.Object) == 0 {
			return document{}, errEmptyImage
		}
		if err := d.setAfter(r.After.Object); err != nil {
			return document{}, err
		}
	}
	return d, nil
}

// setAfter stores the patch if it reproduces after exactly, and is smaller.
func (d *document) setAfter(after map[string]any) error {
	whole, err := json.Marshal(after)
	if err != nil {
		return fmt.Errorf("encode the predicted object: %w", err)
	}
	d.After = after
	if d.Before == nil {
		return nil
	}
	patch := fieldmerge.MergePatch(d.Before, after)
	again, err := json.Marshal(fieldmerge.ApplyMergePatch(d.Before, patch))
	if err != nil {
		return fmt.Errorf("encode the predicted object: %w", err)
	}
	if string(again) != string(whole) {
		return nil
	}
	short, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode the predicted object: %w", err)
	}
	if len(short) < len(whole) {
		d.After, d.AfterPatch, d.Unchanged = nil, patch, len(patch) == 0
	}
	return nil
}

// Decode reads what Encode wrote. Its error quotes nothing of the bytes.
func Decode(data []byte) (Record, error) {
	var d document
	if err := utiljson.Unmarshal(data, &d); err != nil || d.Format != format || d.Item < 0 {
		return Record{}, errNotARecord
	}
	r := Record{Item: d.Item, Type: d.Type, Target: d.Target, Content: d.Content, Took: d.Took, Owners: d.Owners, Release: d.Release, FieldManager: d.FieldManager}
	if len(d.Before) > 0 {
		r.Before = &unstructured.Unstructured{Object: d.Before}
	}
	switch patch := len(d.AfterPatch) > 0 || d.Unchanged; {
	case len(d.After) > 0 && patch, patch && r.Before == nil:
		return Record{}, errNotARecord
	case len(d.After) > 0:
		r.After = &unstructured.Unstructured{Object: d.After}
	case patch:
		after := fieldmerge.ApplyMergePatch(r.Before.DeepCopy().Object, d.AfterPatch)
		if len(after) == 0 {
			return Record{}, errNotARecord
		}
		r.After = &unstructured.Unstructured{Object: after}
	}
	return r, nil
}

// Digest names the content of data: "sha256:" and 64 hexadecimal digits.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return digestOf(sum[:])
}

func digestOf(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

// maxKey leaves room below the 253 bytes of a ConfigMap key for the number of an
// object and the number of a part.
const maxKey = 253 - len(".o10000") - len(".10000")

// Key is the key of an item's record: "{index}_{Kind}_{Namespace}_{Name}", with
// characters that a ConfigMap key may not have replaced by "-" and cut to fit.
// The readable part may be ambiguous; the index makes the key unique.
func Key(item int, ref target.Ref) string {
	key := strconv.Itoa(item) + "_" + ref.GVK.Kind + "_" + ref.Namespace + "_" + ref.Name
	key = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
			return r
		default:
			return '-'
		}
	}, key)
	return key[:min(len(key), maxKey)]
}
