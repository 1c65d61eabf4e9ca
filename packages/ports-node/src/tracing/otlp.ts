/**
 * Spans of requests to a collector of OpenTelemetry, over OTLP/HTTP with JSON. The packages are loaded only by who has an endpoint.
 *
 * Invariants:
 * - A request is never held up: spans wait in a queue of 2,048, are sent once a second, and are dropped while it is full.
 * - A collector that does not answer is told once in the log, until spans are taken again.
 */
import type { Attributes, Context } from "@opentelemetry/api";
import type { Logger, SpanFacts, Tracer, TraceSpan } from "@stamp/ports";

export interface OtlpOptions {
  /** Base URL of the collector, as `OTEL_EXPORTER_OTLP_ENDPOINT` has it: `/v1/traces` follows. */
  readonly endpoint: string;
  /** Part of the traces that begin here, 0 to 1. A trace that a client has begun is its client's choice. */
  readonly share: number;
  readonly role: string;
  readonly name: string;
  readonly release: string;
  readonly logger: Logger;
}

export interface OtlpTracer extends Tracer {
  /** Sends what waits, for two seconds at most, and ends. */
  close(): Promise<void>;
}

const sendEveryMs = 1_000;
const sendTimeoutMs = 5_000;
const closeTimeoutMs = 2_000;

export async function otlpTracer(options: OtlpOptions): Promise<OtlpTracer> {
  const { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } = await import("@opentelemetry/api");
  const { BatchSpanProcessor, ParentBasedSampler, TraceIdRatioBasedSampler, TracerProvider } = await import("@opentelemetry/sdk-trace");
  const { OTLPTraceExporter } = await import("@opentelemetry/exporter-trace-otlp-http");
  const { resourceFromAttributes } = await import("@opentelemetry/resources");
  const { endpoint, share, role, name, release, logger } = options;
  const url = `${endpoint.replace(/\/+$/, "")}/v1/traces`;
  const otlp = new OTLPTraceExporter({ url, timeoutMillis: sendTimeoutMs });
  let fails = false;
  const exporter: ConstructorParameters<typeof BatchSpanProcessor>[0]["exporter"] = {
    export: (spans, done) =>
      otlp.export(spans, (result) => {
        const failed = result.code !== 0;
        if (failed && !fails) logger.warn("the collector takes no spans; they are dropped", { url, error: result.error });
        if (!failed && fails) logger.info("the collector takes spans again", { url });
        fails = failed;
        done(result);
      }),
    shutdown: () => otlp.shutdown(),
  };
  const resource = { "service.name": `stamp-${role}`, "service.instance.id": name, "service.version": release };
  const provider = new TracerProvider({
    resource: resourceFromAttributes(resource),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
    spanProcessors: [new BatchSpanProcessor({ exporter, scheduledDelayMillis: sendEveryMs, exportTimeoutMillis: sendTimeoutMs })],
  });
  const tracer = provider.getTracer("stamp", release);
  return {
    begin(work: string, parent: string | undefined, facts: SpanFacts): TraceSpan {
      const span = tracer.startSpan(work, { kind: SpanKind.SERVER, attributes: facts as Attributes }, above(parent));
      const { traceId, spanId, traceFlags } = span.spanContext();
      return {
        traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`,
        end: (ended, failed) => {
          span.setAttributes(ended as Attributes);
          if (failed !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failed });
          span.end();
        },
      };
    },
    close: () => Promise.race([provider.shutdown().catch(() => {}), new Promise<void>((over) => setTimeout(over, closeTimeoutMs).unref())]),
  };

  function above(parent: string | undefined): Context {
    if (parent === undefined) return ROOT_CONTEXT;
    const [, traceId = "", spanId = "", flags = "00"] = parent.split("-");
    return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true });
  }
}
