"""The OTLP door: OpenTelemetry spans over HTTP and gRPC become rows like those of the product's own SDK.

`protobuf` and `jsonbody` read the two encodings into `spans.OtelSpan`; `mapping` turns a batch of those into
`SpanIn` by the tables in `conventions`; `export` hands them to the ingest pipeline; `http` and `grpc` speak the
transports.
"""
