import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import {
  type Attributes,
  type Context,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  type SpanKind,
  type SpanOptions,
  type SpanStatus,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';

/** Span that has ended. */
export interface EndedSpan {
  name: string;
  kind: SpanKind | undefined;
  attributes: Attributes;
  status: SpanStatus | undefined;
  traceId: string;
  spanId: string;
  parentId: string | undefined;
}

const hex = (bytes: number) => randomBytes(bytes).toString('hex');

class MemorySpan implements Span {
  readonly #ended: EndedSpan;
  readonly #onEnd: (span: EndedSpan) => void;

  constructor(ended: EndedSpan, onEnd: (span: EndedSpan) => void) {
    this.#ended = ended;
    this.#onEnd = onEnd;
  }

  spanContext(): SpanContext {
    const { traceId, spanId } = this.#ended;
    return { traceId, spanId, traceFlags: TraceFlags.SAMPLED };
  }

  setAttribute(name: string, value: Attributes[string]): this {
    this.#ended.attributes[name] = value;
    return this;
  }

  setAttributes(attributes: Attributes): this {
    Object.assign(this.#ended.attributes, attributes);
    return this;
  }

  updateName(name: string): this {
    this.#ended.name = name;
    return this;
  }

  setStatus(status: SpanStatus): this {
    this.#ended.status = status;
    return this;
  }

  end(): void {
    this.#onEnd(this.#ended);
  }

  addEvent = () => this;
  addLink = () => this;
  addLinks = () => this;
  isRecording = () => true;
  recordException = () => undefined;
}

/**
 * Registers a tracer that keeps ended spans in memory, contexts that follow asynchronous work, and
 * the header `traceparent`, like an SDK. Returns the list of ended spans.
 */
export function registerMemoryTraces(): EndedSpan[] {
  const ended: EndedSpan[] = [];
  const tracer = {
    startSpan(
      name: string,
      { kind, attributes = {} }: SpanOptions = {},
      parent: Context = context.active(),
    ) {
      const outer = trace.getSpanContext(parent);
      const ids = { traceId: outer?.traceId ?? hex(16), spanId: hex(8), parentId: outer?.spanId };
      const span = { name, kind, attributes: { ...attributes }, status: undefined, ...ids };
      return new MemorySpan(span, (one) => ended.push(one));
    },
    startActiveSpan() {
      throw new Error('the service names the context of each span');
    },
  } satisfies Tracer;
  trace.setGlobalTracerProvider({ getTracer: () => tracer });
  const storage = new AsyncLocalStorage<Context>();
  const manager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: <A extends unknown[], F extends (...args: A) => ReturnType<F>>(
      current: Context,
      work: F,
      thisArg?: ThisParameterType<F>,
      ...args: A
    ): ReturnType<F> => storage.run(current, () => work.call(thisArg, ...args)),
    bind: <T>(_: Context, target: T): T => target,
    enable: () => manager,
    disable: () => manager,
  };
  context.setGlobalContextManager(manager);
  propagation.setGlobalPropagator({
    inject: () => undefined,
    fields: () => ['traceparent'],
    extract(current, carrier, getter) {
      const [, traceId, spanId] =
        /^00-(\w{32})-(\w{16})-/.exec(String(getter.get(carrier, 'traceparent'))) ?? [];
      if (traceId === undefined || spanId === undefined) return current;
      return trace.setSpanContext(current, {
        traceId,
        spanId,
        traceFlags: TraceFlags.SAMPLED,
        isRemote: true,
      });
    },
  });
  return ended;
}

/** Undoes `registerMemoryTraces`. */
export function removeMemoryTraces(): void {
  trace.disable();
  context.disable();
  propagation.disable();
}
