// Package content reads and writes the content of changes that is kept outside of a
// Transaction, in keys of Secrets and ConfigMaps.
//
// # Invariants
//
// What is decoded is one object, from JSON or YAML, plain or compressed by gzip, and never
// takes more memory than MaxBytes and MaxValues allow, whatever the bytes are. Integers stay
// integers. No error quotes anything of the bytes: they may be confidential.
//
// # What it does not do
//
// It asks no API server, and decides about no rights: which object is read by which user is the
// business of internal/wiring.
package content

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v2"
)

// MaxBytes is how large one content may be when it is unpacked. The API server takes no
// larger request, and its store no larger object.
const MaxBytes = 3 << 20

var (
	errTooLarge = fmt.Errorf("it is larger than %d bytes when it is unpacked, and no API server takes that", MaxBytes)
	errTooMany  = fmt.Errorf("it has more than %d values", MaxValues)
	// In YAML, texts cannot be told from the rest before it is read.
	errTooManyOfYAML = fmt.Errorf("it is YAML with more than %d lines and punctuation marks; if most of them are in texts, write it as JSON", MaxValues)

	errTruncated = errors.New("it is compressed by gzip, and is truncated or damaged")
	errNotObject = errors.New("it is neither the JSON nor the YAML of an object")
	errSeveral   = errors.New("it holds several objects, and one is wanted")
	errDuplicate = errors.New("a field stands in it twice")
	errEmpty     = errors.New("it is empty")
)

// Decode reads one object.
func Decode(data []byte) (map[string]any, error) {
	plain, err := Unpack(data)
	if err != nil {
		return nil, err
	}
	trimmed := bytes.TrimSpace(plain)
	if len(trimmed) == 0 {
		return nil, errEmpty
	}
	if trimmed[0] != '{' {
		return fromYAML(trimmed)
	}
	object, err := fromJSON(trimmed)
	if !errors.Is(err, errNotObject) {
		return object, err
	}
	var first json.RawMessage
	if json.NewDecoder(bytes.NewReader(trimmed)).Decode(&first) == nil {
		return nil, errSeveral // The parser of YAML would read the first and drop the rest.
	}
	return fromYAML(trimmed) // The flow style of YAML begins like JSON.
}

// Unpack returns what is compressed, or the data itself if it is not.
func Unpack(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		if len(data) > MaxBytes {
			return nil, errTooLarge
		}
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, errTruncated
	}
	plain, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	switch {
	case len(plain) > MaxBytes:
		return nil, errTooLarge
	case err != nil:
		return nil, errTruncated
	}
	return plain, nil
}

func fromJSON(data []byte) (map[string]any, error) {
	if valuesOfJSON(data) > MaxValues {
		return nil, errTooMany
	}
	var object map[string]any
	strict, err := kjson.UnmarshalStrict(data, &object, kjson.DisallowDuplicateFields)
	switch {
	case err != nil:
		return nil, errNotObject
	case len(strict) > 0:
		return nil, errDuplicate
	}
	return object, nil
}

func fromYAML(data []byte) (map[string]any, error) {
	if Values(data) > MaxValues {
		return nil, errTooManyOfYAML
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var found map[string]any
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errNotObject
		}
		object, err := oneDocument(document)
		switch {
		case err != nil:
			return nil, err
		case object == nil:
		case found != nil:
			return nil, errSeveral
		default:
			found = object
		}
	}
	if found == nil {
		return nil, errEmpty
	}
	return found, nil
}

// oneDocument reads one document of YAML; nil for one that has nothing but comments. What
// its aliases come to is bounded by the parser, and by MaxBytes.
func oneDocument(document []byte) (map[string]any, error) {
	if GoesOn(document) {
		return nil, errSeveral
	}
	asJSON, err := yaml.YAMLToJSONStrict(document)
	switch {
	case err != nil:
		return nil, errNotObject
	case len(asJSON) > MaxBytes:
		return nil, errTooLarge
	case string(asJSON) == "null":
		return nil, nil
	}
	return fromJSON(asJSON)
}

// GoesOn reports whether something follows the first document, as after "...", at which the text
// is not split: the parser would drop it.
func GoesOn(document []byte) bool {
	var ignored struct{}
	documents := goyaml.NewDecoder(bytes.NewReader(document))
	return documents.Decode(&ignored) == nil && !errors.Is(documents.Decode(&ignored), io.EOF)
}

// Value returns what a key of a Secret or a ConfigMap holds.
func Value(object *unstructured.Unstructured, key string) ([]byte, bool) {
	secret := object.GetKind() == "Secret"
	for _, field := range []string{"data", "binaryData"} {
		text, found, err := unstructured.NestedString(object.Object, field, key)
		switch {
		case err != nil || !found:
		case field == "binaryData" || secret:
			data, err := base64.StdEncoding.DecodeString(text)
			return data, err == nil
		default:
			return []byte(text), true
		}
	}
	return nil, false
}

// Digest names bytes, as spec.changes[].contentFrom.digest does.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// KeyedDigest names bytes to those who know the key, and tells nothing to others: a digest
// by itself would tell a short value to anyone who guesses it.
func KeyedDigest(key string, data []byte) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(data)
	return "hmac-sha256:" + hex.EncodeToString(mac.Sum(nil))
}
