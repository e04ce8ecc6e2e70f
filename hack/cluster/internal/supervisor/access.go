package supervisor

import (
	"errors"
	"fmt"
	"time"
)

// access holds the addresses of a cluster and the credentials for them.
type access struct {
	ca      *authority
	serving identity
	admin   apiClient

	api, controllerManager, scheduler reservedPort

	// adminConfig is held back until the cluster is ready.
	adminConfig kubeconfig
}

// newAccess reserves the ports, and creates the certificates, the signing key
// and the kubeconfig of every component.
func newAccess(l layout, now time.Time) (access, error) {
	ca, err := newAuthority(l.pki(), now)
	if err != nil {
		return access{}, err
	}
	a := access{ca: ca}
	if a.serving, err = ca.serving(); err != nil {
		return access{}, err
	}
	if err := writeSigningKey(l.signingKey()); err != nil {
		return access{}, err
	}
	for _, port := range []*reservedPort{&a.api, &a.controllerManager, &a.scheduler} {
		if *port, err = reservePort(); err != nil {
			return access{}, err
		}
	}
	return a, a.writeClients(l)
}

// writeClients issues the client certificates. The components are known by the
// users that the API server's bootstrap roles name; kwok, which plays every
// kubelet at once, is an administrator.
func (a *access) writeClients(l layout) error {
	const masters = "system:masters"
	admin, err := a.ca.client("admin", "kubernetes-admin", masters)
	if err != nil {
		return err
	}
	a.adminConfig = newKubeconfig(a.api.url(), a.ca.pem, "kubernetes-admin", admin)
	config, err := a.ca.tlsConfig(admin)
	if err != nil {
		return err
	}
	a.admin = newAPIClient(config)
	for _, c := range []struct {
		name, user string
		groups     []string
	}{
		{controllerManager, "system:kube-controller-manager", nil},
		{scheduler, "system:kube-scheduler", nil},
		{kwok, "kwok", []string{masters}},
	} {
		id, err := a.ca.client(c.name, c.user, c.groups...)
		if err != nil {
			return err
		}
		if err := writeJSON(l.kubeconfig(c.name), newKubeconfig(a.api.url(), a.ca.pem, c.user, id)); err != nil {
			return err
		}
	}
	return nil
}

// servingFlags make a component serve its health endpoints on the port.
func (a *access) servingFlags(port reservedPort) []string {
	return []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + port.String(),
		"--permit-port-sharing",
		"--tls-cert-file=" + a.serving.certFile,
		"--tls-private-key-file=" + a.serving.keyFile,
	}
}

// release releases the ports.
func (a *access) release() error {
	var errs []error
	for _, port := range []reservedPort{a.api, a.controllerManager, a.scheduler} {
		if err := port.release(); err != nil {
			errs = append(errs, fmt.Errorf("release port %s: %w", port, err))
		}
	}
	return errors.Join(errs...)
}
