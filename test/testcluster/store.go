package testcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
)

// Stored is one version of one key in etcd.
type Stored struct {
	// Key is the path of an object, such as /registry/secrets/default/app.
	Key string
	// Value is empty if the key was deleted.
	Value    []byte
	Revision int64
}

// everyKey is the range of all keys, as etcd's API over JSON has it.
const everyKey = `"key": "AA==", "range_end": "AA=="`

// errHistoryGone says that the API server has let etcd forget a revision, which it does
// some minutes after it was stored.
var errHistoryGone = errors.New("etcd has forgotten that revision")

// StoreRevision is the revision of what etcd has stored last.
func (c *Cluster) StoreRevision(ctx context.Context) (int64, error) {
	var answer struct {
		Header storeHeader `json:"header"`
	}
	err := c.askStore(ctx, "/v3/kv/range", `{`+everyKey+`, "count_only": true}`, func(d *json.Decoder) error {
		return d.Decode(&answer)
	})
	return answer.Header.Revision, err
}

// StoredSince returns all that etcd has stored after the revision: every version of
// every object, whether it is there still or not.
func (c *Cluster) StoredSince(ctx context.Context, revision int64) ([]Stored, error) {
	last, err := c.StoreRevision(ctx)
	if err != nil || last <= revision {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all []Stored
	watch := fmt.Sprintf(`{"create_request": {%s, "start_revision": "%d"}}`, everyKey, revision+1)
	err = c.askStore(ctx, "/v3/watch", watch, func(d *json.Decoder) error {
		for len(all) == 0 || all[len(all)-1].Revision < last {
			var part storeWatch
			if err := d.Decode(&part); err != nil {
				return err
			}
			if part.Result.Canceled {
				return errHistoryGone
			}
			for _, e := range part.Result.Events {
				all = append(all, e.Entry.stored())
			}
		}
		return nil
	})
	return all, err
}

// Stored returns what etcd has stored now below a path that ends with a slash, such as
// /registry/secrets/default/.
func (c *Cluster) Stored(ctx context.Context, path string) ([]Stored, error) {
	var answer struct {
		Entries []storeEntry `json:"kvs"`
	}
	// All keys that begin with the path come before it with the character after the slash.
	end := strings.TrimSuffix(path, "/") + "0"
	body, err := json.Marshal(map[string][]byte{"key": []byte(path), "range_end": []byte(end)})
	if err != nil {
		return nil, fmt.Errorf("ask etcd for %s: %w", path, err)
	}
	err = c.askStore(ctx, "/v3/kv/range", string(body), func(d *json.Decoder) error { return d.Decode(&answer) })
	var all []Stored
	for _, e := range answer.Entries {
		all = append(all, e.stored())
	}
	return all, err
}

// storeHeader is of every answer of etcd.
type storeHeader struct {
	Revision int64 `json:"revision,string"`
}

// storeWatch is a part of the answer to a watch.
type storeWatch struct {
	Result struct {
		Canceled bool `json:"canceled"`
		Events   []struct {
			Entry storeEntry `json:"kv"`
		} `json:"events"`
	} `json:"result"`
}

// storeEntry is a key as etcd has it.
type storeEntry struct {
	Key      []byte `json:"key"`
	Value    []byte `json:"value"`
	Revision int64  `json:"mod_revision,string"`
}

func (e storeEntry) stored() Stored {
	return Stored{Key: string(e.Key), Value: e.Value, Revision: e.Revision}
}

// askStore sends a request to etcd, past the API server.
func (c *Cluster) askStore(ctx context.Context, path, body string, read func(*json.Decoder) error) error {
	socket := filepath.Join(c.dir, "etcd.sock")
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd"+path, bytes.NewBufferString(body))
	if err != nil {
		return fmt.Errorf("ask etcd for %s: %w", path, err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return fmt.Errorf("ask etcd for %s: %w", path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ask etcd for %s: %s", path, resp.Status)
	}
	if err := read(json.NewDecoder(resp.Body)); err != nil {
		return fmt.Errorf("read what etcd answers for %s: %w", path, err)
	}
	return nil
}
