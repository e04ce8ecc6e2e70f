package content

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"fmt"
)

// maxObject is how many bytes go into one Secret or ConfigMap, which holds 1 MiB at most.
const maxObject = 1_000_000

// Content is one content that is to be stored.
type Content struct {
	// Key is the key that is to hold it.
	Key string
	// Data is the content, plain.
	Data []byte
	// Confidential has it stored in a Secret.
	Confidential bool
}

// Stored says where a content is to be found.
type Stored struct {
	// Object is the number of the object, counted from 0, and Key the key in it.
	Object int
	Key    string
	// Digest is that of what is stored.
	Digest string
}

// Object is a Secret or a ConfigMap that is to be made.
type Object struct {
	Secret bool
	Data   map[string][]byte
	size   int
}

// TooLargeError is the error about a content that no object can hold, or no request.
type TooLargeError struct {
	Key         string
	Bytes, Most int
	// Compressed says that it is too large even so.
	Compressed bool
}

func (e *TooLargeError) Error() string {
	how := ""
	if e.Compressed {
		how = " when it is compressed"
	}
	return fmt.Sprintf("the content of %s takes %d bytes%s, and may take %d: change that object outside of a Transaction", e.Key, e.Bytes, how, e.Most)
}

// Pack lays contents out in as few objects as they fit in, in their order.
func Pack(contents []Content) ([]Stored, []Object, error) {
	stored := make([]Stored, len(contents))
	var objects []Object
	open := map[bool]int{} // by whether it is a Secret: the object that is filled, and one
	for i, c := range contents {
		if len(c.Data) > MaxBytes {
			return nil, nil, &TooLargeError{c.Key, len(c.Data), MaxBytes, false}
		}
		data, err := compress(c)
		if err != nil {
			return nil, nil, err
		}
		if len(data) > maxObject {
			return nil, nil, &TooLargeError{c.Key, len(data), maxObject, true}
		}
		n := open[c.Confidential] - 1
		if n < 0 || objects[n].size+len(data) > maxObject {
			objects = append(objects, Object{Secret: c.Confidential, Data: map[string][]byte{}})
			n = len(objects) - 1
			open[c.Confidential] = n + 1
		}
		objects[n].Data[c.Key] = data
		objects[n].size += len(data) + len(c.Key)
		stored[i] = Stored{Object: n, Key: c.Key, Digest: Digest(data)}
	}
	return stored, objects, nil
}

// compress writes what is confidential with a random text in its header: the digest is in the
// Transaction, and without the text anyone who guesses the content could tell by it.
func compress(c Content) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compress the content of %s: %w", c.Key, err)
	}
	if c.Confidential {
		w.Comment = rand.Text()
	}
	if _, err := w.Write(c.Data); err != nil {
		return nil, fmt.Errorf("compress the content of %s: %w", c.Key, err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress the content of %s: %w", c.Key, err)
	}
	return b.Bytes(), nil
}
