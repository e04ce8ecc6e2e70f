package serving

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

const (
	// allowedFor is how long a right is believed to be there: a token or a role that is
	// withdrawn is good for this long at most.
	allowedFor = time.Minute
	// refusedFor is how long a refusal stands, so that one who asks again and again does
	// not cost the API server a request each time.
	refusedFor = 10 * time.Second
	// askingFor bounds the questions for one request. A scraper waits for 10 s.
	askingFor = 5 * time.Second
	// asking is how many requests may ask at the same time: tokens that were made up must
	// not become a flood at the API server.
	asking = 4
	// remembered is how many verdicts are kept.
	remembered = 256
	// strangers is how many tokens a second are asked about that were not let through within
	// the last trustedFor, and suddenly how many at once. What is beyond that is refused without a
	// question, and who is known is served as ever.
	strangers  = 10
	suddenly   = 30
	trustedFor = time.Hour
	// lasting bounds a request that was let through: an answer that goes on for longer
	// ends, and anyone who wants more of it is judged again.
	lasting = 2 * time.Minute
)

// Lasting is how long an answer may take in all, for the time-out of a server: longer than
// requests last, so that handlers can end their answers by themselves.
const Lasting = lasting + time.Minute

// Access is what a user needs in order to be let through.
type Access struct {
	// Path is the one that they must be allowed to get, for whatever they ask.
	Path string
	// Role is the name of the ClusterRole that allows it, to be told to who may not.
	Role string
	// Password lets the token come as the password of the scheme Basic, with any name: a
	// browser asks its user for that, and has no other way to send what they type.
	Password bool
}

// Guard lets those through whom the API server lets.
type Guard struct {
	client   kubernetes.Interface
	verdicts *cache.LRUExpireCache
	trusted  *cache.LRUExpireCache // who was let through
	limit    *rate.Limiter         // of questions about others
	clock    clock.PassiveClock
	slots    chan struct{}
	lasting  time.Duration
	log      *zap.Logger
}

// NewGuard makes a Guard that asks with the client.
func NewGuard(client kubernetes.Interface, clock clock.PassiveClock, log *zap.Logger) *Guard {
	return &Guard{
		client: client, verdicts: cache.NewLRUExpireCacheWithClock(remembered, clock),
		trusted: cache.NewLRUExpireCacheWithClock(remembered, clock), limit: rate.NewLimiter(strangers, suddenly), clock: clock,
		slots: make(chan struct{}, asking), lasting: lasting, log: log,
	}
}

// verdict is what a request is answered with, or http.StatusOK to let it through.
type verdict struct {
	code int
	why  string
}

// unknown is the verdict about who cannot be judged. It says nothing of the reason: the
// log does, and anyone who asks is not known.
var unknown = verdict{http.StatusServiceUnavailable, "the API server did not say whether you may read this; the log of janusd has more"}

// flooded is the verdict about a token that is one of too many.
var flooded = verdict{http.StatusTooManyRequests, "too many tokens come that are not known: try again in a second"}

// Protect returns a handler that passes on what may be, and answers 401 to who is not known,
// 403 to who may not, 429 if too many come who are not known, and 503 if the API server does not
// tell. What is passed on has a
// deadline, so that a right that is withdrawn ends even an answer without an end.
func (g *Guard) Protect(needed Access, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := g.judge(r.Context(), bearer(r, needed), needed)
		switch v.code {
		case http.StatusOK:
			ctx, cancel := context.WithTimeout(r.Context(), g.lasting)
			defer cancel()
			next.ServeHTTP(w, r.WithContext(ctx))
			return
		case http.StatusTooManyRequests:
			w.Header().Set("Retry-After", "1")
		case http.StatusUnauthorized:
			w.Header().Add("WWW-Authenticate", "Bearer")
			if needed.Password {
				w.Header().Add("WWW-Authenticate", `Basic realm="janusd: the password is a token of the cluster, and the name does not matter", charset="UTF-8"`)
			}
		}
		http.Error(w, v.why, v.code)
	})
}

// bearer is the token that a request carries; empty if it has none.
func bearer(r *http.Request, needed Access) string {
	if _, password, ok := r.BasicAuth(); ok && needed.Password {
		return strings.TrimSpace(password)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func (g *Guard) judge(ctx context.Context, token string, needed Access) verdict {
	if token == "" {
		return verdict{http.StatusUnauthorized, "a bearer token is needed"}
	}
	// Tokens are not kept, only what they can be told apart by.
	key := sha256.Sum256([]byte(needed.Path + "\x00" + token))
	if known, ok := g.verdicts.Get(key); ok {
		return known.(verdict)
	}
	if _, ok := g.trusted.Get(key); !ok && !g.limit.AllowN(g.clock.Now(), 1) {
		return flooded
	}
	ctx, cancel := context.WithTimeout(ctx, askingFor)
	defer cancel()
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	case <-ctx.Done():
		g.log.Warn("a request was refused: too many others wait for the API server to say who they are")
		return unknown
	}
	v, err := g.ask(ctx, token, needed)
	if err != nil {
		g.log.Warn("a request was refused: the API server does not say whether it may be", zap.String("path", needed.Path), zap.Error(err))
		return unknown
	}
	if v.code == http.StatusOK {
		g.verdicts.Add(key, v, allowedFor)
		g.trusted.Add(key, true, trustedFor)
	} else {
		g.verdicts.Add(key, v, refusedFor)
	}
	return v
}

// ask asks the API server whose the token is, and whether they may do what is needed.
func (g *Guard) ask(ctx context.Context, token string, needed Access) (verdict, error) {
	review, err := g.client.AuthenticationV1().TokenReviews().Create(ctx, &authnv1.TokenReview{
		Spec: authnv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return verdict{}, fmt.Errorf("ask whose a token is: %w", err)
	}
	if !review.Status.Authenticated {
		return verdict{http.StatusUnauthorized, "the API server does not know the token"}, nil
	}
	user := review.Status.User
	extra := map[string]authzv1.ExtraValue{}
	for name, values := range user.Extra {
		extra[name] = authzv1.ExtraValue(values)
	}
	access, err := g.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authzv1.SubjectAccessReview{
		Spec: authzv1.SubjectAccessReviewSpec{
			User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
			NonResourceAttributes: &authzv1.NonResourceAttributes{Path: needed.Path, Verb: "get"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return verdict{}, fmt.Errorf("ask what %s may do: %w", user.Username, err)
	}
	if !access.Status.Allowed {
		return verdict{http.StatusForbidden, user.Username + " may not get " + needed.Path + ": bind the ClusterRole " + needed.Role}, nil
	}
	return verdict{code: http.StatusOK}, nil
}
