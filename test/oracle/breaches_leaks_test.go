package oracle

import (
	"testing"

	"janus.io/janus/test/faultinject"
)

func TestLeaksAreFound(t *testing.T) {
	const canary = `correct "horse" <battery>`
	leak := func(act func(*world)) *world {
		w := commit(hooks{"do1": act})
		w.evidence.Canary = canary
		return w
	}
	said := func(text string) *world {
		return leak(func(w *world) { w.evidence.Texts = map[string]string{"the log": "something " + text + " else"} })
	}
	for _, c := range []wrong{
		{"in the status", Confidentiality, "has the content of a Secret in status", leak(func(w *world) {
			w.checkpoint(func(s tree) { s["failedItem"] = canary })
		})},
		{"in a before-image", Confidentiality, "shop/configmaps/kept-rollback@", leak(func(w *world) {
			w.foreign(Ref{"configmaps", ns, "kept-rollback"}, "x", func(o tree) {
				o["data"] = tree{"a": `{"before":{"data":{"p":"Y29ycmVjdCAiaG9yc2UiIDxiYXR0ZXJ5Pg=="}}}`}
			})
		})},
		{"in an event", Confidentiality, "the body of POST events/e#0", leak(func(w *world) {
			w.request(faultinject.Call{Method: "POST"}, Ref{"events.events.k8s.io", ns, "e"}, tree{"note": canary}, nil)
		})},
		{"in an answer", Confidentiality, "the answer of PATCH configmaps/a#1", leak(func(w *world) {
			w.request(faultinject.Call{Method: "PATCH", User: account, DryRun: true}, mapA, nil, tree{"data": canary})
		})},
		{"in the log", Confidentiality, "the log has the content of a Secret: …something ", said(canary)},
		{"in the log, quoted", Confidentiality, "the log", said(`correct \"horse\" <battery>`)},
		{"in the log, as JSON", Confidentiality, "the log", said(`correct \"horse\" \u003cbattery\u003e`)},
		{"in the log, in base64 of something larger", Confidentiality, "the log", said("eHh4eGNvcnJlY3QgImhvcnNlIiA8YmF0dGVyeT54")},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
}

func TestABeforeImageOfASecretInAConfigMapIsFound(t *testing.T) {
	was := targets
	secret := Ref{"secrets", ns, "a"}
	targets = []Ref{secret, mapB, webD, mapC}
	defer func() { targets = was }()
	w := commit(hooks{
		"begin": func(w *world) { w.foreign(secret, "tester", func(o tree) { o["data"] = tree{"color": "red"} }) },
		"-do0": func(w *world) {
			w.send("PATCH", secret, asItem(0), "Secret", func(o tree) { o["data"].(tree)["color"] = "blue" })
		},
	})
	expect(t, w.breaches(), Confidentiality, "item 0 (Patch shop/secrets/a): the before-image of a Secret is in shop/configmaps/txn-rollback@")
}
