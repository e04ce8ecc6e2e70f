// Command vulnerabilities looks for known vulnerabilities in what the programs are built of, and
// compares what it finds with hack/vulnerabilities/janus.openvex.json:
//
//	go run -C hack/vulnerabilities . [-database=URL] [-std] [-update]
//
// The search is that of govulncheck, which also says whether a vulnerable function is called. Each
// vulnerability that is found has to have a statement there. One of which no function is called is
// "not_affected", with that for a justification; -update writes these statements. One that may be
// called is "affected" or "under_investigation", with what is done about it, or, once a
// person has looked, "not_affected" with an impact statement. A statement about what the data
// of the day no longer find has to be removed.
//
// What is wrong with Go's standard library is no matter of statements: a newer patch of Go mends it.
// It is told, and with -std, as in CI, the command fails for it.
//
// Without -database, the data are a copy that is pinned by its checksum: golang.org/x/vulndb, a Go
// module. They need no network once they have been downloaded, and tell the same each time. With
// the URL of the Go vulnerability database, they are those of the day.
//
// The file is OpenVEX, which scanners of images read: trivy image --vex, grype --vex.
package main
