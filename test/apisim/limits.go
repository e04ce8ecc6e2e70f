package apisim

import "errors"

// maxStored is the size of a request to etcd that it refuses. Around the object are
// the key and some bytes more.
const maxStored = 1536 << 10

// errTooLarge is what a server passes on of that.
var errTooLarge = errors.New("etcdserver: request is too large")

// fit refuses an object that etcd would not take. A server tries again without
// managedFields before it gives up, unless the request is an apply. Built-in objects
// are stored in a shorter form, and their own limits are met first.
func (r *request) fit(obj content, old *stored) error {
	if _, custom := r.kind.shape.(*customShape); !custom {
		return nil
	}
	likely := len(r.body)
	if old != nil {
		likely += len(old.data)
	}
	if likely < maxStored/2 || r.storedSize(obj) <= maxStored {
		return nil
	}
	if r.applied {
		return errTooLarge
	}
	delete(metadata(obj), "managedFields")
	if r.storedSize(obj) > maxStored {
		return errTooLarge
	}
	return nil
}

func (r *request) storedSize(obj content) int { return len(encode(obj)) + 3*len(r.key()) + 64 }
