"""Sends the same calls through the real OpenTelemetry SDK and its OTLP exporter to each URL given:
front-end -> carts -> a database, and front-end -> a queue -> worker, some of them without an answer.

Usage: send.py CALLS PLAIN|GZIP URL...      (URLs of /v1/traces)
"""
import sys

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, set_span_in_context

calls, form, urls = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
compression = Compression.Gzip if form == "GZIP" else Compression.NoCompression
providers = {}
for name in ("front-end", "carts", "worker"):
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    for url in urls:
        provider.add_span_processor(
            BatchSpanProcessor(OTLPSpanExporter(endpoint=url, compression=compression, timeout=300))
        )
    providers[name] = provider


def start(service, name, kind, parent=None, **attributes):
    context = set_span_in_context(parent) if parent else None
    tracer = providers[service].get_tracer("test")
    return tracer.start_span(name, context=context, kind=kind, attributes=attributes)


for i in range(calls):
    root = start("front-end", "GET /", SpanKind.SERVER)
    inner = start("front-end", "render", SpanKind.INTERNAL, root)
    call = start("front-end", "GET", SpanKind.CLIENT, inner, **{"server.address": "10.9.8.7"})
    answer = start("carts", "GET /carts", SpanKind.SERVER, call,
                   **{"http.request.body.size": 100, "http.response.body.size": i % 7})
    query = start("carts", "find", SpanKind.CLIENT, answer, **{"peer.service": "carts-db"})
    send = start("front-end", "send", SpanKind.PRODUCER, inner,
                 **{"peer.service": "rabbitmq", "messaging.destination.name": "orders"})
    work = start("worker", "process", SpanKind.CONSUMER, send, **{"peer.service": "rabbitmq"})
    for span in (work, send, query, answer, call, inner, root):
        span.end()
for provider in providers.values():
    provider.shutdown()
