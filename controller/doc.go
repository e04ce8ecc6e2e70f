// Package controller drives the engine: it watches Transactions, queues those
// that have something to do, and lets workers run the engine on them. What the
// engine has made durable becomes events and metrics here.
//
// The informer says which Transactions to look at and nothing else. Its copies
// are cut down to that; every run starts from the Transaction as the API server
// has it now.
package controller
