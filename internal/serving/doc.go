// Package serving is how janusd serves what is not for everybody: over TLS, and to those
// whom the API server lets.
//
// Guard asks the API server who sends a request (TokenReview) and whether they may make it
// (SubjectAccessReview on a path). Nothing goes through of which that is not known: a
// request that the API server could not be asked about is refused. Nor does an answer go on
// for ever because the sender was once allowed to ask for it. The delegating
// authenticator of k8s.io/apiserver does the same; it is not used because it brings gRPC
// and sixteen further modules along.
//
// Certificates come from a directory and are read again when they may have been renewed,
// or are made at start for those who have none. One of the latter encrypts, and proves to
// nobody whom they talk to.
package serving
