/** Spans of requests, for tools that draw where the time of one request went (OpenTelemetry). A world without a tracer makes none. */

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
