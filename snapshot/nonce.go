package snapshot

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

// nonces has a nonce for each record of confidential content. Anyone who may read the Transaction can
// read the digest of a record, and often knows all of the record but the password: without the nonce,
// that would be found by trying.
//
// A nonce follows from the record and from a key that no one knows outside of this process. So a
// save that is repeated finds what it has stored; another process steps over that, as over what
// any other attempt has left.
type nonces struct{ key []byte }

// nonceBytes is how long a nonce is: too long to be tried.
const nonceBytes = 16

func newNonces() nonces {
	n := nonces{make([]byte, sha256.Size)}
	_, _ = rand.Read(n.key) // It never fails.
	return n
}

func (n nonces) of(record []byte) string {
	mac := hmac.New(sha256.New, n.key)
	mac.Write(record)
	return hex.EncodeToString(mac.Sum(nil)[:nonceBytes])
}
