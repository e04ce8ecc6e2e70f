// Package formats settles in which formats the clients of a program speak to the API server:
// JSON, and protobuf where client-go has it.
package formats

import "k8s.io/client-go/features"

// WithoutCBOR keeps client-go from CBOR, whatever the environment says of its feature gates. It is
// called before the first client is made.
//
// With ClientsPreferCBOR, an API server that reads no CBOR refuses the first write of each client, and
// client-go only learns from that for the next. A Transaction fails by such a refusal.
func WithoutCBOR() { features.ReplaceFeatureGates(withoutCBOR{features.FeatureGates()}) }

// withoutCBOR reports the gates of CBOR as closed, and all others as they are.
type withoutCBOR struct{ features.Gates }

// Enabled implements features.Gates.
func (g withoutCBOR) Enabled(gate features.Feature) bool {
	return gate != features.ClientsAllowCBOR && gate != features.ClientsPreferCBOR && g.Gates.Enabled(gate)
}
