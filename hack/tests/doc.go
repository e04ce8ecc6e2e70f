// Command tests runs the tests of Janus in named parts:
//
//	go run ./hack/tests run quick        # what make test runs
//	go run ./hack/tests run faults e2e   # parts of make test-all
//	go run ./hack/tests list             # the parts, and the minutes planned for each
//	go run ./hack/tests ci 1234          # the parts that run 1234 of CI does after the quick one
//
// parts.yaml has the parts. A part is a list of steps, and a step is a target of the Makefile
// or one go test. Steps with "share" hand one control plane to all their packages by the
// environment variable JANUS_TEST_CLUSTER, see test/testcluster.
//
// # Invariant
//
// Every test of every module is in a part of make test-all: TestEveryTestIsInAPart reads the
// sources and says which is not. A test that is skipped fails its part, because a part says
// by itself which tests it leaves out.
//
// # What it prints
//
// A line for each package when it is done. Of a test that fails, the ten lines that say what
// was expected and what was seen, and ten of the message of the assertion; all that the tests
// of a package printed is in a file below dist/tests, which is named beside it.
package main
