/**
 * HTTP/2 connections live in the threads, metrics in the main one: a thread tells every second what its
 * connections did and hold, the main thread adds up.
 */
import { z } from 'zod';
import type { SenderContext } from '../../connectors/contract/connector.ts';
import { type ConnectorId, connectorIds } from '../../shared/domain/labels.ts';
import type { Metrics } from '../../shared/metrics.ts';

/** How often a thread tells. */
export const readingEveryMs = 1000;
/** A thread that told nothing for so long is gone. */
const staleAfterMs = 5000;

type TransportFact = Parameters<NonNullable<SenderContext['onTransport']>>[0];

const reading = z.object({
  connector: z.enum(connectorIds),
  connections: z.number(),
  streams: z.number(),
  /** How often each event came, since the last reading. */
  events: z.record(z.string(), z.number()),
  roundTrips: z.array(z.number()),
});

/** What one thread tells of one connector. */
export type TransportReading = z.infer<typeof reading>;

/** What a thread posts. */
export const transportMessage = z.object({ http2: z.array(reading), thread: z.number() });

/** The facts of one thread since they were last told. */
export class TransportLog {
  #readings = new Map<ConnectorId, TransportReading>();

  add(connector: ConnectorId, { event, seconds }: TransportFact): void {
    const { events, roundTrips } = this.#of(connector);
    if (event === 'round_trip') roundTrips.push(seconds ?? 0);
    else events[event] = (events[event] ?? 0) + 1;
  }

  drain(
    loads: { connector: ConnectorId; load: { connections: number; streams: number } | undefined }[],
  ): TransportReading[] {
    for (const { connector, load } of loads) {
      if (load === undefined) continue;
      const told = this.#of(connector);
      told.connections += load.connections;
      told.streams += load.streams;
    }
    const readings = [...this.#readings.values()];
    this.#readings = new Map();
    return readings;
  }

  #of(connector: ConnectorId): TransportReading {
    const known = this.#readings.get(connector);
    if (known) return known;
    const made = { connector, connections: 0, streams: 0, events: {}, roundTrips: [] };
    this.#readings.set(connector, made);
    return made;
  }
}

/** Round trips that are kept until somebody reads the metrics. */
const keptRoundTrips = 1000;

/** The readings of all threads, in the main thread. */
export class TransportReadings {
  readonly #monotonicMs: () => number;
  readonly #latest = new Map<number, { atMs: number; readings: TransportReading[] }>();
  readonly #untold = new Map<ConnectorId, Pick<TransportReading, 'events' | 'roundTrips'>>();

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Takes what a thread posted; anything else is passed over. */
  take(message: unknown): void {
    const { success, data } = transportMessage.safeParse(message);
    if (!success) return;
    this.#latest.set(data.thread, { atMs: this.#monotonicMs(), readings: data.http2 });
    for (const { connector, events, roundTrips } of data.http2) {
      const untold = this.#untold.get(connector) ?? { events: {}, roundTrips: [] };
      this.#untold.set(connector, untold);
      for (const [event, count] of Object.entries(events))
        untold.events[event] = (untold.events[event] ?? 0) + count;
      untold.roundTrips.push(...roundTrips);
      untold.roundTrips.splice(0, Math.max(0, untold.roundTrips.length - keptRoundTrips));
    }
  }

  reportTo(metrics: Metrics): void {
    for (const [connector, { events, roundTrips }] of this.#untold) {
      for (const [event, count] of Object.entries(events))
        metrics.http2Events.inc({ connector, event }, count);
      for (const seconds of roundTrips) metrics.http2RoundTripSeconds.observe({ connector }, seconds);
    }
    this.#untold.clear();
    metrics.http2Connections.reset();
    metrics.http2Streams.reset();
    const freshAtMs = this.#monotonicMs() - staleAfterMs;
    for (const [thread, { atMs, readings }] of this.#latest) {
      if (atMs < freshAtMs) this.#latest.delete(thread);
      else
        for (const { connector, connections, streams } of readings) {
          metrics.http2Connections.inc({ connector }, connections);
          metrics.http2Streams.inc({ connector }, streams);
        }
    }
  }
}
