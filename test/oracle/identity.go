package oracle

import "janus.io/janus/test/faultinject"

// judgeIdentity: a target is read, tried and written as the ServiceAccount of its
// Transaction, and what Janus keeps for itself as Janus.
func (c *trial) judgeIdentity() {
	for i := range c.Calls {
		call := &c.Calls[i]
		if call.Resource == "" || call.Kind == faultinject.Aside {
			continue
		}
		if call.User != "" && !c.users[call.User] {
			c.breach(Identity, "%s was made as %s, which no Transaction names", call.At, call.User)
			continue
		}
		if call.Name == "" {
			if call.User == "" && call.Method == "GET" && (call.Resource == "configmaps" || call.Resource == "secrets") {
				c.breach(Identity, "%s reads all %s, and not only what is Janus' own, as Janus itself", call.At, call.Resource)
			}
			continue
		}
		ref := refOf(call)
		targeted, owned := c.targets[ref], c.own[ref] || isLock(ref)
		switch {
		case len(targeted) > 0 && owned:
			// Another client has made a target of what Janus keeps for itself.
		case len(targeted) > 0:
			if !asOneOf(call, targeted) {
				c.breach(Identity, "%s is about the target %s and was made as %q, not as %s", call.At, ref, call.User, targeted[0].user)
			}
		case owned || c.isImage(ref) || isRevision(ref):
			looked := ref.Resource == transactions && call.Method == "GET" // as the owner of something else
			if call.User != "" && !looked {
				c.breach(Identity, "%s is about %s, which is Janus' own, and was made as %s", call.At, ref, call.User)
			}
		case call.User != "", ref.Resource == leases, ref.Resource == transactions, isImageName(ref):
		case call.DryRun, call.Kind == faultinject.Write:
			c.breach(Identity, "%s writes %s as Janus itself", call.At, ref)
		}
	}
}

// asOneOf reports whether a request was made as one of the Transactions of a target
// says. Janus itself reads the ServiceAccount that it is about to act as.
func asOneOf(call *faultinject.Call, targeted []*run) bool {
	for _, r := range targeted {
		if call.User == r.user {
			return true
		}
		if call.User == "" && call.Method == "GET" && call.Resource == "serviceaccounts" &&
			call.Name == r.Spec.ServiceAccountName && call.Namespace == r.Namespace {
			return true
		}
	}
	return false
}

// isImage reports whether an object is named as one with before-images of a
// Transaction of the evidence.
func (c *trial) isImage(ref Ref) bool {
	if !isImageName(ref) {
		return false
	}
	for _, r := range c.runs {
		if ref.Namespace != r.Namespace {
			continue
		}
		if base := r.Name + "-rollback"; ref.Name == base || len(ref.Name) > len(base) && ref.Name[:len(base)+1] == base+"-" {
			return true
		}
	}
	return false
}
