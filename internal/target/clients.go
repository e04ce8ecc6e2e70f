package target

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	authzv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"janus.io/janus/internal/errclass"
)

// Clients hands out clients that act as a ServiceAccount. One is made for each
// namespace and name and kept until the ServiceAccount is gone or has been
// re-created, or until many others have been used since; all of them share the
// connections of the controller's transport.
type Clients struct {
	base  *rest.Config
	core  corev1client.CoreV1Interface
	own   string
	clock clock.PassiveClock
	trust time.Duration
	// marked is set if requests carry Mark.
	marked bool

	// mu has clients made once, though many ask for them at the same time.
	mu    sync.Mutex
	cache *lru.Cache // of types.NamespacedName to known
}

// kept is of how many ServiceAccounts the clients are kept. Anyone who may make ServiceAccounts
// and Transactions can have them made for ever new ones; one that was dropped costs no more
// than to be made again.
const kept = 4096

// known is an identity, and when its ServiceAccount was last seen.
type known struct {
	*Identity
	seen time.Time
}

// Trust is for how long janusd takes a ServiceAccount that it has read to exist. One that
// is deleted stops its Transactions that much later.
const Trust = 250 * time.Millisecond

// Identity is a ServiceAccount and the clients that act as it.
type Identity struct {
	// Account is the ServiceAccount.
	Account types.NamespacedName
	// UID is the one it had when the clients were made.
	UID types.UID
	// Dynamic reads and writes targets.
	Dynamic dynamic.Interface
	// Metadata reads the metadata of objects without the rest.
	Metadata metadata.Interface
	// Access asks what the ServiceAccount may do.
	Access authzv1client.SelfSubjectAccessReviewInterface

	core corev1client.CoreV1Interface // of Janus itself
}

// NewClients makes the cache. base is the controller's own configuration and own
// its user name, which no Transaction may act as.
func NewClients(base *rest.Config, core corev1client.CoreV1Interface, own string) *Clients {
	return &Clients{base: base, core: core, own: own, clock: clock.RealClock{}, cache: lru.New(kept)}
}

// Trusting has a ServiceAccount that was read taken to exist for a while.
func (c *Clients) Trusting(d time.Duration, by clock.PassiveClock) *Clients {
	c.trust, c.clock = d, by
	return c
}

// Mark and MarkValue are an extra of the user, by which an admission policy can tell requests
// that Janus makes as a ServiceAccount from others of the same ServiceAccount. Only who may
// impersonate the extra can make such requests.
const (
	Mark      = "backup.janus.io/made-by"
	MarkValue = "janusd"
)

// Marking has the requests carry Mark. It takes a right that janusd has only where locks are
// enforced.
func (c *Clients) Marking() *Clients {
	c.marked = true
	return c
}

// As returns the identity of a ServiceAccount. It reads the ServiceAccount, unless that was
// done a moment ago: impersonating one that was deleted would succeed wherever a binding
// still names it.
func (c *Clients) As(ctx context.Context, account types.NamespacedName) (*Identity, error) {
	if username(account) == c.own {
		return nil, errclass.New(errclass.Terminal, errclass.AccessDenied, "act as", "ServiceAccount "+account.String(),
			"it is the identity of Janus itself").WithHint("name a ServiceAccount that may do just what the Transaction needs")
	}
	if id := c.justSeen(account); id != nil {
		return id, nil
	}
	asked := c.clock.Now()
	found, err := Confirmed(func() (*corev1.ServiceAccount, error) {
		return c.core.ServiceAccounts(account.Namespace).Get(ctx, account.Name, metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
		c.evict(account)
		return nil, errclass.New(errclass.Terminal, errclass.ServiceAccountGone, "act as", "ServiceAccount "+account.String(),
			"it does not exist").WithHint("create it, with the rights that the changes and their compensations need")
	case apierrors.IsForbidden(err):
		// That is about the rights of Janus, and no fault of the Transaction: it may heal.
		return nil, errclass.New(errclass.Retryable, errclass.AccessDenied, "read", "ServiceAccount "+account.String(), "%w", err).
			WithHint("Janus itself needs the right to get it: install its RBAC as shipped")
	case err != nil:
		return nil, errclass.Wrap(err, "read", "ServiceAccount "+account.String(), false)
	}
	return c.cached(account, found.UID, asked)
}

func (c *Clients) justSeen(account types.NamespacedName) *Identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, ok := c.find(account)
	if ago := c.clock.Since(id.seen); !ok || ago < 0 || ago >= c.trust {
		return nil
	}
	return id.Identity
}

// find returns what is kept. The lock is held.
func (c *Clients) find(account types.NamespacedName) (known, bool) {
	found, ok := c.cache.Get(account)
	if !ok {
		return known{}, false
	}
	return found.(known), true
}

func (c *Clients) cached(account types.NamespacedName, uid types.UID, seen time.Time) (*Identity, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id, ok := c.find(account); ok && id.UID == uid {
		c.cache.Add(account, known{id.Identity, seen})
		return id.Identity, nil
	}
	id, err := c.build(account, uid)
	if err != nil {
		return nil, err
	}
	c.cache.Add(account, known{id, seen})
	return id, nil
}

func (c *Clients) evict(account types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cache.Remove(account)
}

// build makes clients that impersonate the ServiceAccount. No group is named:
// the API server then gives the user the groups of a ServiceAccount, and the
// controller needs no right to impersonate groups.
func (c *Clients) build(account types.NamespacedName, uid types.UID) (*Identity, error) {
	config := rest.CopyConfig(c.base)
	config.Impersonate = rest.ImpersonationConfig{UserName: username(account)}
	if c.marked {
		config.Impersonate.Extra = map[string][]string{Mark: {MarkValue}}
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for ServiceAccount %s: %w", account, err)
	}
	dyn, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("make a client for ServiceAccount %s: %w", account, err)
	}
	meta, err := metadata.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("make a client for ServiceAccount %s: %w", account, err)
	}
	set, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("make a client for ServiceAccount %s: %w", account, err)
	}
	return &Identity{
		Account: account, UID: uid, Dynamic: dyn, Metadata: meta, Access: set.AuthorizationV1().SelfSubjectAccessReviews(), core: c.core,
	}, nil
}

func username(account types.NamespacedName) string {
	return "system:serviceaccount:" + account.Namespace + ":" + account.Name
}

// Resource returns the interface to a target's resource in its namespace.
func (i *Identity) Resource(r Ref) dynamic.ResourceInterface {
	if r.Namespace == "" {
		return i.Dynamic.Resource(r.GVR)
	}
	return i.Dynamic.Resource(r.GVR).Namespace(r.Namespace)
}
