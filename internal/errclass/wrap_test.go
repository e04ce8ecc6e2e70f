package errclass_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"janus.io/janus/internal/errclass"
)

const canary = "c4n4ry-v4lue"

// quoting are answers of the API server that quote the object.
var quoting = map[string]error{
	"in the message": status(403, metav1.StatusReasonForbidden, "denied because of "+canary),
	"in the message of a cause": status(422, metav1.StatusReasonInvalid, "invalid",
		metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "data.password", Message: "Invalid value: " + canary}),
	"in the value of a list key": status(409, metav1.StatusReasonConflict, "conflict",
		metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: `.spec.env[name="` + canary + `"].value`, Message: canary}),
	"in the value of a set item": status(409, metav1.StatusReasonConflict, "conflict",
		metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: `.spec.items[="` + canary + `"]`}),
	"in a validation error": apierrors.NewInvalid(widget, "a", field.ErrorList{
		field.Invalid(field.NewPath("data").Key("password"), canary, "too short"),
		field.NotSupported(field.NewPath("type"), canary, []string{"a"})}),
	"in an error that wraps the answer": fmt.Errorf("decode %s: %w", canary, apierrors.NewBadRequest(canary)),
	"in an internal error":              apierrors.NewInternalError(errors.New(canary)),
}

func TestSensitiveAnswersAreNotQuoted(t *testing.T) {
	for name, err := range quoting {
		t.Run(name, func(t *testing.T) {
			wrapped := errclass.Wrap(err, "patch", "Secret shop/a", true)
			for _, text := range []string{
				wrapped.Error(), errclass.Message(wrapped), fmt.Sprintf("%+v", wrapped), fmt.Sprintf("%#v", wrapped),
				fmt.Errorf("outer: %w", wrapped).Error(), errclass.Wrap(wrapped, "undo", "item 3", true).Error(),
			} {
				if strings.Contains(text, canary) {
					t.Errorf("quoted: %s", text)
				}
			}
			for cause := error(wrapped); cause != nil; cause = errors.Unwrap(cause) {
				if strings.Contains(cause.Error(), canary) {
					t.Errorf("quoted in the chain: %s", cause)
				}
			}
			if _, ok := errclass.Status(wrapped); ok {
				t.Error("the answer itself is in the chain")
			}
			if !strings.Contains(wrapped.Error(), "withheld") {
				t.Errorf("the reader is not told: %s", wrapped)
			}
		})
	}
}

func TestSensitiveAnswersNameTheFields(t *testing.T) {
	err := errclass.Wrap(quoting["in the message of a cause"], "patch", "Secret shop/a", true)
	for _, word := range []string{"patch Secret shop/a", "422", "Invalid", "data.password", "FieldValueInvalid"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s does not say %s", err, word)
		}
	}
}

func TestOrdinaryAnswersAreQuoted(t *testing.T) {
	err := errclass.Wrap(quoting["in the message"], "patch", "ConfigMap shop/a", false)
	if want := "patch ConfigMap shop/a: denied because of " + canary; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestErrorSaysWhatOnWhatWhyAndTheWayOut(t *testing.T) {
	cases := []struct {
		err  *errclass.Error
		want string
	}{
		{&errclass.Error{Op: "patch"}, "patch"},
		{&errclass.Error{Op: "patch", Target: "ConfigMap shop/a"}, "patch ConfigMap shop/a"},
		{&errclass.Error{Op: "patch", Err: io.EOF}, "patch: EOF"},
		{errclass.New(errclass.Terminal, errclass.Invalid, "patch", "ConfigMap shop/a", "%d fields", 2).WithHint("name them"),
			"patch ConfigMap shop/a: 2 fields; name them"},
	}
	for _, c := range cases {
		if c.err.Error() != c.want {
			t.Errorf("got %q, want %q", c.err, c.want)
		}
	}
}

func TestCausesCanBeFound(t *testing.T) {
	if err := errclass.New(errclass.Terminal, errclass.Invalid, "patch", "a", "read: %w", io.EOF); !errors.Is(err, io.EOF) {
		t.Error("New hides its cause")
	}
	if err := errclass.Wrap(io.EOF, "get", "a", false); !errors.Is(err, io.EOF) {
		t.Error("Wrap hides its cause")
	}
}

func TestMessageIsPrintable(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"plain", "all is well", "all is well"},
		{"newlines and tabs", "a\nb\r\nc\td", "a b  c d"},
		{"line separators", "a\u2028b\u2029c\u0085d", "a b c d"},
		{"terminal escapes", "\x1b[31mred\x1b]0;title\a", "\uFFFD[31mred\uFFFD]0;title\uFFFD"},
		{"control characters of eight bits", "\u009b31m", "\uFFFD31m"},
		{"writing direction", "a\u202eb\u2066c", "a\uFFFDb\uFFFDc"},
		{"zero width", "a\u200bb\ufeffc", "a\uFFFDb\uFFFDc"},
		{"not UTF-8", "a\xff\xfeb", "a\uFFFDb"},
		{"other scripts", "größe 日本 😀", "größe 日本 😀"},
		{"nul and delete", "a\x00b\x7fc", "a\uFFFDb\uFFFDc"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := errclass.Printable(c.text); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := errclass.Message(errors.New(c.text)); got != c.want {
				t.Errorf("the message of an error is %q, want %q", got, c.want)
			}
		})
	}
}

func TestMessageIsCutBetweenCharacters(t *testing.T) {
	exact := strings.Repeat("x", errclass.MaxMessage)
	if got := errclass.Printable(exact); got != exact {
		t.Error("a message of the greatest length is cut")
	}
	for _, character := range []string{"x", "é", "日", "😀", "\x1b"} {
		for offset := range 4 {
			got := errclass.Printable(strings.Repeat("x", offset) + strings.Repeat(character, errclass.MaxMessage+1))
			if len(got) > errclass.MaxMessage || len(got) < errclass.MaxMessage-6 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
				t.Errorf("%q after %d: %d bytes, ends in %q", character, offset, len(got), got[len(got)-8:])
			}
		}
	}
}
