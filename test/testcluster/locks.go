package testcluster

import "flag"

var tables = flag.Bool("tables", false, "have Janus keep the locks of a namespace in one Lease, as janusd --locks=namespaces does")

// LocksInTables reports whether the tests are to be run with the locks of a namespace in one Lease.
func LocksInTables() bool { return *tables }
