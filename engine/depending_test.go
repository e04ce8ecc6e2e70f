package engine

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// chain is a Deployment that mounts a ConfigMap, and what waits for the Deployment.
var chain = []string{"cfg", "web", "gate"}

// dependent has each item of a chain depend on the one before, by dependsOn.
func dependent(w *world) {
	w.needs("web", "cfg")
	w.needs("gate", "web")
	w.refuse["do gate"] = errRefused
}

// references has the content of each item of a chain name the target of the one before.
func references(w *world) {
	w.refers["web"], w.refers["gate"] = []string{"cfg"}, []string{"web"}
	w.refuse["do gate"] = errRefused
}

// takeOverWeb is what another client does to the target of web.
func (w *world) takeOverWeb() { w.after["do web"] = func() { w.targets["web"] = "theirs" } }

// depending are what happens to what an item depends on that is not rolled back.
var depending = []scenario{
	{"what an unresolved item depends on stays", chain, func(w *world) {
		dependent(w)
		w.takeOverWeb()
	}, api.PhaseFailed},
	{"what the content of an unresolved item names stays", chain, func(w *world) {
		references(w)
		w.takeOverWeb()
	}, api.PhaseFailed},
	{"what an unresolved item depends on in the end stays, and nothing else", []string{"db", "other", "cfg", "web", "gate"}, func(w *world) {
		dependent(w)
		w.needs("cfg", "db")
		w.takeOverWeb()
	}, api.PhaseFailed},
	{"what was blocked is rolled back by a recovery, after what has blocked it", chain, func(w *world) {
		dependent(w)
		w.refuse["undo web"] = errForbidden
		w.after["release the locks"] = func() { delete(w.refuse, "undo web") }
	}, api.PhaseRolledBack},
	{"what is blocked stays in a recovery that is refused again", chain, func(w *world) {
		dependent(w)
		w.refuse["undo web"] = errForbidden
	}, api.PhaseFailed},
	{"two items block one, and a recovery rolls back the first of them alone", []string{"cfg", "web", "api", "gate"}, func(w *world) {
		w.needs("web", "cfg")
		w.needs("api", "cfg")
		w.needs("gate", "web", "api")
		w.refuse["do gate"] = errRefused
		w.refuse["undo api"] = errForbidden
		w.takeOverWeb()
		w.after["release the locks"] = func() { delete(w.refuse, "undo api") }
	}, api.PhaseFailed},
	{"what an item depends on waits while the item is set aside", []string{"quota", "cfg", "web", "gate"}, func(w *world) {
		dependent(w)
		w.needs("gate", "web", "quota")
		w.invalidUntil("web", "quota")
	}, api.PhaseRolledBack},
	{"what an item depends on stays when the item was set aside in vain", []string{"quota", "cfg", "web", "gate"}, func(w *world) {
		dependent(w)
		w.needs("gate", "web", "quota")
		w.refuse["undo web"] = errInvalid
	}, api.PhaseFailed},
	{"a policy that an item depends on is rolled back before it if it may be the reason", []string{"policy", "cfg", "web", "gate"}, func(w *world) {
		dependent(w)
		w.needs("web", "cfg", "policy")
		w.stored.Spec.Changes[0].Target.APIVersion = "admissionregistration.k8s.io/v1"
		w.invalidUntil("web", "policy")
	}, api.PhaseRolledBack},
	{"both changes of an object stay on which an unresolved item depends", []string{"cfg1", "cfg2", "web", "gate"}, func(w *world) {
		w.refers["web"] = []string{"cfg1", "cfg2"}
		w.refuse["do gate"] = errRefused
		w.takeOverWeb()
	}, api.PhaseFailed},
	{"an earlier change of a blocked object stays too", []string{"cfg1", "cfg2", "web", "gate"}, func(w *world) {
		w.refers["web"] = []string{"cfg2"}
		w.refuse["do gate"] = errRefused
		w.refuse["undo web"] = errForbidden
		w.after["release the locks"] = func() { delete(w.refuse, "undo web") }
	}, api.PhaseRolledBack},
	{"it is suspended in a recovery before what was blocked is rolled back", chain, func(w *world) {
		dependent(w)
		w.refuse["undo web"] = errForbidden
		w.after["release the locks"] = func() {
			delete(w.refuse, "undo web")
			w.after["undo web"] = func() { w.suspend(); w.after[atRest] = w.resume }
		}
	}, api.PhaseRolledBack},
	{"it is not known whether an item is in effect, and what it depends on stays", chain, func(w *world) {
		dependent(w)
		w.replies["do web"] = []reply{{err: errLost}}
		w.refuse["observe web"] = errForbidden
		w.after["release the locks"] = func() { delete(w.refuse, "observe web") }
	}, api.PhaseRolledBack},
}

func TestWhatBlocksAnItemIsNamed(t *testing.T) {
	w := newWorld(t, "db", "other", "cfg", "web", "gate")
	dependent(w)
	w.needs("cfg", "db")
	w.takeOverWeb()
	w.run()
	for _, name := range []string{"cfg", "db"} {
		item := w.itemOfName(name)
		assert.Equal(t, api.ItemUnresolved, item.State, name)
		assert.Equal(t, errclass.Blocked, item.Reason, name)
		assert.Equal(t, "web", item.BlockedBy, name)
		assert.Contains(t, item.Message, "ConfigMap shop/"+name+" stays as the change made it: item web (ConfigMap shop/web), which depends on it, is not rolled back")
	}
	assert.Equal(t, api.ItemRolledBack, w.itemOfName("other").State)
	assert.Equal(t, "gate", w.stored.Status.FailedItem, w.transcript())
}

// What is on record must tell every process the same: a crash after any line ends as none does.
func TestACrashWhileItemsAreBlockedChangesNothingAboutTheEnd(t *testing.T) {
	for _, s := range depending {
		if strings.Contains(s.name, "suspended") {
			continue // When a person says so depends on how far it is.
		}
		t.Run(s.name, func(t *testing.T) {
			healthy := newWorld(t, s.items...)
			s.set(healthy)
			healthy.run()
			for n := 1; ; n++ {
				w := newWorld(t, s.items...).wide(1 + n%3*50)
				s.set(w)
				w.nth = func(call int, _ string) reply { return reply{crash: call == n} }
				w.run()
				require.NoError(t, checkOrder(w.lines), w.transcript())
				require.Equal(t, s.ends, phaseOf(w), w.transcript())
				require.Equal(t, unresolvedIn(healthy), unresolvedIn(w), w.transcript())
				oracle(t, w)
				if w.calls < n {
					return
				}
			}
		})
	}
}

func unresolvedIn(w *world) []string {
	var out []string
	for _, item := range w.stored.Status.Items {
		if item.State == api.ItemUnresolved {
			out = append(out, item.Name+" "+string(item.State)+" "+item.BlockedBy)
		}
	}
	return out
}

// A person who asks for a recovery has the blocker rolled back first, whatever its reason was.
func TestARecoveryOnRequestRollsBackWhatWasBlockedToo(t *testing.T) {
	w := newWorld(t, chain...)
	dependent(w)
	w.takeOverWeb()
	w.run()
	require.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())

	w.ask("1")
	w.run()
	require.Equal(t, api.PhaseFailed, phaseOf(w), "the reason is still there")
	require.Equal(t, "web", w.itemOfName("cfg").BlockedBy, w.transcript())
	require.Zero(t, w.undos["cfg"])

	w.targets["web"] = wrote("web")
	w.ask("2")
	w.run()
	require.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	assert.Less(t, strings.Index(w.transcript(), "\nundo web\n"), strings.Index(w.transcript(), "\nundo cfg\n"), w.transcript())
	assert.Empty(t, w.itemOfName("cfg").BlockedBy)
	oracle(t, w)
}

// Nothing waits for minutes, and no recovery is begun, for what only a blocker could heal.
func TestNoRecoveryBeginsForABlockedItemAlone(t *testing.T) {
	w := newWorld(t, chain...)
	dependent(w)
	w.takeOverWeb()
	w.run()
	require.Equal(t, api.PhaseFailed, phaseOf(w))
	assert.Zero(t, w.stored.Status.Recoveries, w.transcript())
}

// Who stops a rollback has all that is in effect left, and who has it rolled back after all meets
// the item again that blocks the others.
func TestWhatIsBlockedStaysWhenARollbackIsStoppedAndTakenUp(t *testing.T) {
	for title, when := range map[string]string{"before it is blocked": "undo web: fails", "when it is blocked": "checkpoint 9"} {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t, "db", "cfg", "web", "gate")
			dependent(w)
			w.takeOverWeb()
			w.after[when] = func() { w.cancel(api.CancelStop) }
			w.run()
			require.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())
			require.Zero(t, w.undos["cfg"], w.transcript())

			w.cancel(api.CancelRollback)
			w.run()
			require.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())
			assert.Equal(t, map[string]int{"db": 1}, w.undos, w.transcript())
			assert.Equal(t, "web", w.itemOfName("cfg").BlockedBy, w.transcript())
			oracle(t, w)
		})
	}
}

// A recovery that is stopped when the blocker is rolled back leaves what was blocked for the same
// reason as all others, so that it is rolled back when that is asked for.
func TestARecoveryIsStoppedBetweenABlockerAndWhatItBlocked(t *testing.T) {
	w := newWorld(t, chain...)
	dependent(w)
	w.refuse["undo web"] = errForbidden
	w.after["release the locks"] = func() {
		delete(w.refuse, "undo web")
		w.after["undo web"] = func() { w.cancel(api.CancelStop) }
	}
	w.run()
	require.Equal(t, api.PhaseFailed, phaseOf(w), w.transcript())
	require.Equal(t, errclass.Cancelled, w.itemOfName("cfg").Reason, w.transcript())

	w.cancel(api.CancelRollback)
	w.run()
	require.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
	oracle(t, w)
}
