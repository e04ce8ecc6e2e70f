// Package kinds has what is special about particular kinds of Kubernetes: what of an object no
// before-image can bring back, which steps the API server lets nobody undo, what controllers
// adopt, and what they delete because of a field. It is knowledge in tables, without requests;
// each row is held against a real API server by a test. What is special about custom kinds only
// their operators know.
//
// Who writes which field is in fieldmerge, and when an object is ready in internal/readiness.
package kinds
