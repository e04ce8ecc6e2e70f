package snapshot

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func textOf(n int) string { return strings.Repeat("x", n) }

// reassembled reads the records back as a Reader does, without digests.
func reassembled(t *testing.T, b batch, records []stored) {
	t.Helper()
	for i, r := range records {
		var got strings.Builder
		part := 1
		for _, c := range b.chunks {
			if c.place.number < beginsIn(b.keys[i]) {
				continue
			}
			piece, there := c.data[partKey(b.keys[i], part)]
			if !there {
				break
			}
			got.WriteString(piece)
			part++
		}
		if got.String() != r.data {
			t.Errorf("record %d does not come back", i)
		}
	}
	for _, c := range b.chunks {
		size := 0
		for key, value := range c.data {
			size += len(key) + len(value)
			if !utf8.ValidString(value) {
				t.Errorf("%s in object %d is not UTF-8", key, c.place.number)
			}
		}
		if size != c.size || size > capacity {
			t.Errorf("object %d has %d bytes, counted %d", c.place.number, size, c.size)
		}
	}
}

func TestRecordsArePackedUpToTheCapacity(t *testing.T) {
	t.Parallel()
	key := "0_ConfigMap_shop_a"
	other := "1_ConfigMap_shop_b"
	cases := []struct {
		name    string
		first   int
		records []stored
		objects int
	}{
		{"one that fills an object exactly", 1, []stored{{key, textOf(capacity - len(key))}}, 1},
		{"one that is a byte too large", 1, []stored{{key, textOf(capacity - len(key) + 1)}}, 2},
		{"two that fill an object exactly", 1, []stored{{key, textOf(1000)}, {other, textOf(capacity - len(key) - len(other) - 1000)}}, 1},
		{"two that are a byte too large", 1, []stored{{key, textOf(1000)}, {other, textOf(capacity - len(key) - len(other) - 999)}}, 2},
		{"one of three capacities", 1, []stored{{key, textOf(3 * capacity)}}, 4},
		{"a small one after a large one shares its last object", 1, []stored{{key, textOf(capacity + 1000)}, {other, "small"}}, 2},
		{"a small one before a large one", 1, []stored{{key, "small"}, {other, textOf(capacity + 1000)}}, 3},
		{"numbers go on", 7, []stored{{key, textOf(capacity)}, {other, textOf(capacity)}}, 4},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := layout(configMaps, c.first, c.records)
			if len(b.chunks) != c.objects {
				t.Errorf("%d objects, want %d", len(b.chunks), c.objects)
			}
			for i, chunk := range b.chunks {
				if chunk.place.number != c.first+i {
					t.Errorf("object %d has the number %d", i, chunk.place.number)
				}
			}
			if lastOf(b.mark, c.first) != b.last() {
				t.Errorf("the mark %s does not say that %d is the last", b.mark, b.last())
			}
			reassembled(t, b, c.records)
		})
	}
}

func TestRecordsAreCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, character := range []string{"é", "日", "😀"} {
		for offset := range 4 {
			records := []stored{{"0_Widget__a", textOf(offset) + strings.Repeat(character, 2*capacity/len(character))}}
			reassembled(t, layout(configMaps, 1, records), records)
		}
	}
}

func TestNamesOfTargetsAreNotTakenForNumbers(t *testing.T) {
	t.Parallel()
	var records []stored
	for i, name := range []string{"a.o2", "a.2", "a.o2.2", "a.o99999999999999999999"} {
		records = append(records, stored{fmt.Sprintf("%d_Widget__%s", i, name), textOf(400_000)})
	}
	b := layout(configMaps, 1, records)
	seen := map[string]bool{}
	for _, key := range b.keys {
		if seen[key] {
			t.Errorf("%s occurs twice", key)
		}
		seen[key] = true
	}
}

func TestNamesOfObjectsFitAndDiffer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 62) + "." + strings.Repeat("b", 190)
	cases := []struct {
		transaction string
		number      int
		want        string
	}{
		{"release", 1, "release-rollback"},
		{"release", 2, "release-rollback-2"},
		{long[:244], 1, long[:244] + "-rollback"},
		{long[:245], 1, shorten(long[:245], 244) + "-rollback"},
		{long[:244], 2, shorten(long[:244], 242) + "-rollback-2"},
	}
	for _, c := range cases {
		got := objectName(c.transaction, c.number)
		if got != c.want || len(got) > 253 {
			t.Errorf("got %s of %d, want %s", got, len(got), c.want)
		}
	}
	if objectName(long, 1) == objectName(long+"c", 1) {
		t.Error("two Transactions share a name")
	}
	// Cut right behind a dot, which must not stand next to a dash.
	if got := shorten(strings.Repeat("a", 51)+"."+strings.Repeat("b", 30), 63); strings.Contains(got, ".-") {
		t.Errorf("got %s", got)
	}
}

func TestOnlyObjectsOfThisTransactionAreListed(t *testing.T) {
	t.Parallel()
	ref := refWith("ConfigMap/a-rollback", "Secret/a-rollback", "Secret/a-rollback-2", // its own
		"Secret/other", "ConfigMap/b-rollback", "Pod/a-rollback", "ConfigMap/a-rollback-1", "ConfigMap/a-rollback-02", "a-rollback", "")
	got := listed("a", &ref)
	if want := []place{{configMaps, 1}, {secrets, 1}, {secrets, 2}}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	odd := refWith("ConfigMap/a-rollback-2-rollback", "ConfigMap/a-rollback-2-rollback-3")
	if got := listed("a-rollback-2", &odd); len(got) != 2 || got[1].number != 3 {
		t.Errorf("got %v", got)
	}
}
