package target

import "janus.io/janus/internal/errclass"

// Confirmed reads an object, and if that does not exist, reads it once more. Much
// follows from the absence of an object: that its deletion took effect, that there is
// nothing to roll back, that a Transaction has failed for good. One answer is not
// enough for that: an API server that is starting, or a proxy before it, may deny for
// a moment what is there. An object that exists costs one request as ever.
func Confirmed[T any](read func() (T, error)) (T, error) {
	found, err := read()
	if errclass.Is(err, errclass.NotFound) || errclass.Is(err, errclass.NamespaceNotFound) {
		return read()
	}
	return found, err
}
