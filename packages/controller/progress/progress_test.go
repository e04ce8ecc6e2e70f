package progress

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	txn "janus.io/janus/api/v1alpha1"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/packages/check"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func installing() *api.PackageTransaction {
	p := &api.PackageTransaction{}
	p.Name, p.UID, p.Generation = "install-bucket", "uid", 1
	p.Spec.Change = api.Install
	p.Spec.Install = &api.InstallSpec{}
	p.Spec.Install.Package.Metadata.Name = "acme-bucket"
	p.Spec.ServiceAccountRef = api.ServiceAccountRef{Namespace: "shop", Name: "installer"}
	return p
}

func transaction(phase txn.Phase) *txn.Transaction {
	t := &txn.Transaction{}
	t.Namespace, t.Name, t.Status.Phase = "shop", "acme-bucket-1", phase
	return t
}

func reason(p *api.PackageTransaction, kind string) string {
	c := meta.FindStatusCondition(p.Status.Conditions, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

func TestTheNameIsThatOfTheAttempt(t *testing.T) {
	p := installing()
	name := Name(p)
	assert.Regexp(t, `^acme-bucket-[0-9a-f]{8}$`, name)
	assert.Equal(t, name, Name(installing()), "a repeat makes no second")
	p.Generation++
	assert.Equal(t, name, Name(p), "as after it was deleted")
	p.Status.Failures++
	assert.NotEqual(t, name, Name(p), "another attempt")
	other := installing()
	other.UID = "other"
	assert.NotEqual(t, name, Name(other), "another PackageTransaction of the name")
	p.Spec.Install.Package.Metadata.Name = strings.Repeat("a", 63)
	assert.LessOrEqual(t, len(Name(p)), 63)
}

func TestWhatComesNext(t *testing.T) {
	deleted := func(of *txn.Transaction, finalizers ...string) *txn.Transaction {
		of.DeletionTimestamp, of.Finalizers = &metav1.Time{Time: now}, finalizers
		return of
	}
	nothing := transaction(txn.PhaseFailed)
	nothing.Status.Conditions = []metav1.Condition{{Type: txn.ConditionRolledBack, Status: "False", Reason: "NothingCommitted"}}
	for name, c := range map[string]struct {
		change    func(*api.PackageTransaction)
		t         *txn.Transaction
		want      Action
		installed string
		ready     string
		failures  int64
	}{
		"nothing is made yet":                  {want: Plan},
		"it runs":                              {t: transaction(txn.PhaseCommitting), want: Record, installed: "Unknown InstallationInProgress", ready: "Unknown TransactionInProgress"},
		"it is not begun":                      {t: transaction(""), want: Record, installed: "Unknown InstallationInProgress", ready: "Unknown TransactionInProgress"},
		"it is rolled back just now":           {t: transaction(txn.PhaseRollingBack), want: Record, installed: "Unknown InstallationInProgress", ready: "Unknown TransactionInProgress"},
		"it has committed":                     {t: transaction(txn.PhaseCommitted), want: Record, installed: "True InstallationComplete", ready: "True TransactionComplete"},
		"it was rolled back":                   {t: transaction(txn.PhaseRolledBack), want: Record, installed: "False InstallationFailed", ready: "Unknown TransactionInProgress", failures: 1},
		"it has changed nothing":               {t: nothing, want: Record, installed: "False InstallationFailed", ready: "Unknown TransactionInProgress", failures: 1},
		"it could not be rolled back":          {t: transaction(txn.PhaseFailed), want: Record, installed: "False InstallationFailed", ready: "False InstallationFailed"},
		"it was deleted before it was begun":   {t: deleted(transaction("")), want: Record, installed: "False InstallationFailed", ready: "Unknown TransactionInProgress", failures: 1},
		"it is deleted, and being rolled back": {t: deleted(transaction(txn.PhaseRollingBack), txn.Finalizer), want: Record, installed: "Unknown InstallationInProgress", ready: "Unknown TransactionInProgress"},
		"it is gone": {change: func(p *api.PackageTransaction) {
			p.Status.TransactionRef = &api.TransactionRef{Namespace: "shop", Name: Name(p)}
		}, want: Record, installed: "False InstallationFailed", ready: "Unknown TransactionInProgress", failures: 1},
		"the last attempt": {
			change: func(p *api.PackageTransaction) { p.Spec.RetryLimit = ptr.To[int64](1) }, t: transaction(txn.PhaseRolledBack),
			want: Record, installed: "False InstallationFailed", ready: "False InstallationFailed", failures: 1,
		},
		"the next attempt is not due": {change: func(p *api.PackageTransaction) { p.Status.RetryTime = &metav1.Time{Time: now.Add(time.Minute)} }, want: Wait},
		"the next attempt is due":     {change: func(p *api.PackageTransaction) { p.Status.RetryTime = &metav1.Time{Time: now} }, want: Plan},
		"it has ended":                {change: func(p *api.PackageTransaction) { p.Status.CompletionTime = &metav1.Time{Time: now} }, t: transaction(txn.PhaseCommitted), want: End},
		"it is to be deleted":         {change: func(p *api.PackageTransaction) { p.DeletionTimestamp = &metav1.Time{Time: now} }, t: transaction(txn.PhaseCommitting), want: Abort},
		"it is to be deleted, and rolled back": {
			change: func(p *api.PackageTransaction) { p.DeletionTimestamp = &metav1.Time{Time: now} }, t: deleted(transaction(txn.PhaseRollingBack), txn.Finalizer), want: Wait,
		},
		"it is to be deleted, and was rolled back": {
			change: func(p *api.PackageTransaction) { p.DeletionTimestamp = &metav1.Time{Time: now} }, t: deleted(transaction(txn.PhaseRolledBack)), want: End,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := installing()
			if c.change != nil {
				c.change(p)
			}
			step := Next(p, c.t, DefaultPolicy, now)
			assert.Equal(t, c.want, step.Action)
			assert.Equal(t, c.installed, reason(p, api.Installed))
			assert.Equal(t, c.ready, reason(p, api.Ready))
			assert.Equal(t, c.failures, p.Status.Failures)
			if step.Action == Wait {
				assert.Positive(t, step.After)
			}
			if step.Action == Record {
				assert.Equal(t, p.Generation, p.Status.ObservedGeneration)
				next := c.t
				if p.Status.Failures > 0 {
					next = nil // That of another attempt.
				}
				again := Next(p.DeepCopy(), next, DefaultPolicy, now)
				assert.NotEqual(t, Record, again.Action, "what is recorded is not recorded again")
			}
			assert.Equal(t, strings.HasPrefix(c.ready, "False"), meta.IsStatusConditionTrue(p.Status.Conditions, api.Stalled))
			assert.Equal(t, strings.HasPrefix(c.ready, "False") || strings.HasPrefix(c.ready, "True"), p.Status.CompletionTime != nil && name != "it has ended")
		})
	}
}

func TestAttemptsWaitLongerEachTimeAndEnd(t *testing.T) {
	p := installing()
	p.Spec.RetryLimit = ptr.To[int64](8)
	var waits []time.Duration
	for p.Status.CompletionTime == nil {
		require.Less(t, len(waits), 20)
		Next(p, transaction(txn.PhaseRolledBack), DefaultPolicy, now)
		if p.Status.RetryTime != nil {
			waits = append(waits, p.Status.RetryTime.Sub(now))
		}
	}
	s := time.Second
	assert.Equal(t, []time.Duration{10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 300 * s, 300 * s}, waits)
	assert.EqualValues(t, 8, p.Status.Failures)
	assert.Nil(t, p.Status.RetryTime)
}

func TestFindingsAreJudgedByWhatIsAllowed(t *testing.T) {
	of := func(reason check.Reason, warning, temporary bool) check.Findings {
		return check.Findings{{Reason: reason, Message: "m", Warning: warning, Temporary: temporary}}
	}
	for name, c := range map[string]struct {
		found     check.Findings
		allow     api.Allow
		validated string
		over      bool
		failures  int64
	}{
		"nothing":                 {validated: "True AllValidationsPassed"},
		"a warning":               {found: of(check.Outage, true, false), validated: "True AllValidationsPassed"},
		"an error":                {found: of(check.MissingDependency, false, false), validated: "False MissingDependency", over: true},
		"what may pass":           {found: of(check.ImageUnusable, false, true), validated: "False ImageUnusable", failures: 1},
		"what may pass and not":   {found: append(of(check.ImageUnusable, false, true), of(check.CRDConflict, false, false)...), validated: "False ImageUnusable", over: true},
		"a downgrade":             {found: of(check.Downgrade, true, false), validated: "False Downgrade", over: true},
		"a downgrade, allowed":    {found: of(check.Downgrade, true, false), allow: api.Allow{Downgrade: true}, validated: "True AllValidationsPassed"},
		"a narrowing":             {found: of(check.SchemaIncompatible, false, false), allow: api.Allow{Downgrade: true, DataLoss: true}, validated: "False SchemaIncompatible", over: true},
		"a narrowing, allowed":    {found: of(check.SchemaIncompatible, false, false), allow: api.Allow{SchemaNarrowing: true}, validated: "True AllValidationsPassed"},
		"a harmless narrowing":    {found: of(check.SchemaIncompatible, true, false), validated: "True AllValidationsPassed"},
		"a loss of data":          {found: of(check.DataLoss, false, false), allow: api.Allow{SchemaNarrowing: true}, validated: "False DataLoss", over: true},
		"a loss, allowed":         {found: of(check.DataLoss, false, false), allow: api.Allow{DataLoss: true}, validated: "True AllValidationsPassed"},
		"a conflict, all allowed": {found: of(check.CRDConflict, false, false), allow: api.Allow{Downgrade: true, SchemaNarrowing: true, DataLoss: true}, validated: "False CRDConflict", over: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := installing()
			p.Spec.Allow = c.allow
			passed := Checked(p, c.found, DefaultPolicy, now)
			assert.Equal(t, c.validated, reason(p, api.Validated))
			assert.Equal(t, strings.HasPrefix(c.validated, "True"), passed)
			assert.Equal(t, c.over, p.Status.CompletionTime != nil)
			assert.Equal(t, c.failures, p.Status.Failures)
			if c.over {
				assert.Equal(t, "False ValidationFailed", reason(p, api.Ready))
				assert.Equal(t, "Unknown InstallationPending", reason(p, api.Installed))
			}
		})
	}
}

func TestTheLatestAreKept(t *testing.T) {
	var all []*api.PackageTransaction
	for i := range 12 {
		p := installing()
		p.Name = string(rune('a' + i))
		end := now.Add(time.Duration(i) * time.Hour)
		if i%2 == 0 {
			succeeded(p, end, "")
		} else {
			ended(p, end, api.Installed, InstallationFailed, "")
		}
		all = append(all, p)
	}
	running := installing()
	held := installing()
	succeeded(held, now.Add(-time.Hour), "")
	held.Finalizers = []string{api.Finalizer}
	var names []string
	for _, p := range TooMany(append(all, running, held), 1) {
		names = append(names, p.Name)
	}
	assert.Equal(t, []string{"a", "c", "e", "g", "i", "b", "d", "f"}, names)
}
