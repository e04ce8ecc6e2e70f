package snapshot

import (
	"bytes"
	"encoding/json"
	"testing"
)

// nonceOf reads the nonce off an encoded record.
func nonceOf(t *testing.T, e Encoded) string {
	t.Helper()
	var d document
	if err := json.Unmarshal([]byte(e.data), &d); err != nil {
		t.Fatal(err)
	}
	return d.Nonce
}

func TestADigestTellsNothingOfWhatIsConfidential(t *testing.T) {
	t.Parallel()
	f, other := setUp(t), setUp(t)
	byContent := record(2, 10)
	byContent.Confidential = true
	for _, r := range []Record{secretRecord(1, 10), byContent} {
		first, second, elsewhere := f.encoded(r)[0], f.encoded(r)[0], other.encoded(r)[0]
		if first.image.Digest == Digest(encode(t, r)) || len(nonceOf(t, first)) != 2*nonceBytes {
			t.Errorf("anyone who guesses the record knows its digest; the nonce is %q", nonceOf(t, first))
		}
		if first.image.Digest != second.image.Digest {
			t.Error("a save that is repeated would not find what it has stored")
		}
		if first.image.Digest == elsewhere.image.Digest {
			t.Error("two processes have the same key")
		}
	}
	if nonceOf(t, f.encoded(secretRecord(1, 10))[0]) == nonceOf(t, f.encoded(secretRecord(1, 11))[0]) {
		t.Error("two records have the same nonce")
	}
	if open := f.encoded(record(1, 10))[0]; open.image.Digest != Digest(encode(t, record(1, 10))) {
		t.Error("what is not confidential has a nonce")
	}
}

// While janusd is upgraded, and after it was, there are records that a Janus without nonces has saved.
func TestARecordWithoutANonceIsLoaded(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	r := secretRecord(1, 10)
	e := f.encoded(r)[0]
	e.data = string(encode(t, r))
	e.image.Digest = Digest([]byte(e.data))
	saved, err := f.store.Save(t.Context(), f.owner, nil, []Encoded{e})
	if err != nil {
		t.Fatal(err)
	}
	f.wantLoad(saved.Ref, saved.Images, []Record{r})
}

// Two processes that save the same record keep both: either may be what a status is about to name.
func TestWhatAnotherProcessHasSavedIsSteppedOver(t *testing.T) {
	t.Parallel()
	f, other := setUp(t), setUp(t)
	other.owner = f.owner
	r := secretRecord(1, 10)
	first, second := f.save(nil, r), other.save(nil, r)
	f.wantStored("Secret/release-rollback", "Secret/release-rollback-2")
	for _, saved := range []Saved{first, second} {
		f.wantLoad(saved.Ref, saved.Images, []Record{r})
	}
	if err := f.store.SweepUnlisted(t.Context(), f.owner, &second.Ref, true); err != nil {
		t.Fatal(err)
	}
	f.wantStored("Secret/release-rollback-2")
}

// A Janus that knows no nonces reads records that have one.
func TestWhatIsAddedToARecordIsPassedOver(t *testing.T) {
	t.Parallel()
	r := secretRecord(1, 10)
	data := bytes.Replace(encode(t, r), []byte(`{"format":1,`), []byte(`{"format":1,"later":"x",`), 1)
	if !bytes.Equal(encode(t, decode(t, data)), encode(t, r)) {
		t.Error("the rest is not read")
	}
}
