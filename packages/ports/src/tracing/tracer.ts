/** Spans of requests, for tools that draw where the time of one request went (OpenTelemetry). A world without a tracer makes none. */

/** URL of a collector. One with a user, a password or a query is none: it stands in logs, and where the configuration is shown. */
export const collectorUrlShape: RegExp = /^https?:\/\/[^\s/@?#]+(\/[^\s@?#]*)?$/;
export const collectorUrlText = "a URL such as http://127.0.0.1:4318; a key goes into OTEL_EXPORTER_OTLP_HEADERS";

export type SpanFacts = Readonly<Record<string, string | number | undefined>>;

export interface TraceSpan {
  /** Names this span to work below it, as W3C Trace Context writes it. */
  readonly traceparent: string;
  /** Ends the span, once. `failed`: why the work failed; undefined if it did not. */
  end(facts: SpanFacts, failed?: string): void;
}

export interface Tracer {
  /** Begins a span below `parent`; undefined begins a trace. */
  begin(name: string, parent: string | undefined, facts: SpanFacts): TraceSpan;
}
