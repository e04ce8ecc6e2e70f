// Package otlp sends spans to a collector by OTLP over HTTP.
//
// It does not follow calls, as tracing libraries do: anyone who has spans knows all of them
// at once, with their times and ids, and hands them over. That takes the messages of the
// protocol and an HTTP client, and no more. The SDK of OpenTelemetry with its exporter
// would bring gRPC and some fifteen modules along, for what is off by default.
//
// Nobody waits for it: what cannot be sent in time is given up, and the log says so.
package otlp
