/**
 * Traces (operate/tracing.md). Only this file imports the API of OpenTelemetry. The operator
 * provides the SDK. Without an SDK, no span is created, and nothing is read or written for traces.
 */
import {
  type Attributes,
  type Context,
  context,
  isSpanContextValid,
  ProxyTracerProvider,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';

const scope = 'carillon';
/** Pattern of the header `traceparent` (W3C Trace Context), version 00. */
const traceParentForm = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/**
 * Description of a span. Attributes contain ids, connector names and counts, but no token, key,
 * address or text of a message.
 */
export interface SpanDetails {
  kind?: 'server' | 'client' | 'producer' | 'consumer';
  attributes?: Attributes;
  /** Parent of the span. By default, the span of the current work. */
  parent?: Context;
}

const kinds = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
};

/** True if an SDK is registered. */
export function isTracing(): boolean {
  const provider = trace.getTracerProvider();
  return (
    !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer(scope) !== undefined
  );
}

/**
 * Runs `work` in a span, which is passed to it. Without an SDK, only runs `work`. An exception
 * marks the span as failed. Only the name of the error is recorded, because its text may quote a
 * value of the caller.
 */
export function inSpan<T>(
  name: string,
  details: SpanDetails,
  work: (span?: Span) => Promise<T>,
): Promise<T> {
  return isTracing() ? runInSpan(name, details, work) : work();
}

async function runInSpan<T>(
  name: string,
  { kind, attributes = {}, parent = context.active() }: SpanDetails,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  const spanKind = kind === undefined ? SpanKind.INTERNAL : kinds[kind];
  const span = trace.getTracer(scope).startSpan(name, { kind: spanKind, attributes }, parent);
  try {
    return await context.with(trace.setSpan(parent, span), () => work(span));
  } catch (error) {
    span.setAttribute('error.type', error instanceof Error ? error.name : 'unknown');
    markFailed(span);
    throw error;
  } finally {
    span.end();
  }
}

/** Marks a span as failed. */
export const markFailed = (span: Span): void => void span.setStatus({ code: SpanStatusCode.ERROR });

/**
 * Returns the trace context from a caller's headers. The SDK decides which headers are read;
 * `traceparent` by default.
 */
export const contextOfHeaders = (headers: object): Context =>
  propagation.extract(ROOT_CONTEXT, headers);

/**
 * Returns a span as `traceparent`, for work that another process continues. Returns undefined if
 * there is no span.
 */
export function traceParentOf(span: Span | undefined): string | undefined {
  const current = span?.spanContext();
  if (!current || !isSpanContextValid(current)) return undefined;
  const flags = current.traceFlags.toString(16).padStart(2, '0');
  return `00-${current.traceId}-${current.spanId}-${flags}`;
}

/**
 * Returns the context to continue: the context of the current work, or else the context of a stored
 * `traceparent`. `read` is only called if needed.
 */
export async function contextToContinue(read: () => Promise<string | null>): Promise<Context> {
  if (trace.getSpan(context.active())) return context.active();
  const [, traceId, spanId, flags] = traceParentForm.exec((await read()) ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return ROOT_CONTEXT;
  const traceFlags = Number.parseInt(flags, 16);
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}
