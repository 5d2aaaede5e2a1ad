/**
 * Metrics of the HTTP/2 connections in the threads: every second each thread posts the events and the load of its
 * connections, and the main thread adds them up.
 */
import { z } from 'zod';
import type { SenderContext } from '../../../connectors/contract/connector.ts';
import { type ConnectorId, connectorIds } from '../../../shared/domain/labels.ts';
import type { Metrics } from '../../../shared/metrics.ts';

/** Interval in which a thread posts its readings. */
export const readingEveryMs = 1000;
/** Age after which the readings of a thread are dropped: it has ended. */
const staleAfterMs = 5000;

type TransportEvent = Parameters<NonNullable<SenderContext['onTransport']>>[0];

const reading = z.object({
  connector: z.enum(connectorIds),
  connections: z.number(),
  streams: z.number(),
  /** Number of each event since the last reading. */
  events: z.record(z.string(), z.number()),
  roundTrips: z.array(z.number()),
});

/** Events and load of one connector in one thread. */
export type TransportReading = z.infer<typeof reading>;

/** Message of a thread. */
const transportMessage = z.object({ http2: z.array(reading), thread: z.number() });

/** Events of one thread since the last reading. */
export class TransportLog {
  #readings = new Map<ConnectorId, TransportReading>();

  add(connector: ConnectorId, { event, seconds }: TransportEvent): void {
    const { events, roundTrips } = this.#of(connector);
    if (event === 'round_trip') roundTrips.push(seconds ?? 0);
    else events[event] = (events[event] ?? 0) + 1;
  }

  drain(
    loads: { connector: ConnectorId; load: { connections: number; streams: number } | undefined }[],
  ): TransportReading[] {
    for (const { connector, load } of loads) {
      if (load === undefined) continue;
      const reading = this.#of(connector);
      reading.connections += load.connections;
      reading.streams += load.streams;
    }
    const readings = [...this.#readings.values()];
    this.#readings = new Map();
    return readings;
  }

  #of(connector: ConnectorId): TransportReading {
    const known = this.#readings.get(connector);
    if (known) return known;
    const created = { connector, connections: 0, streams: 0, events: {}, roundTrips: [] };
    this.#readings.set(connector, created);
    return created;
  }
}

/** Most round trips that are kept until the next scrape. */
const keptRoundTrips = 1000;

/** The readings of all threads, in the main thread. */
export class TransportReadings {
  readonly #monotonicMs: () => number;
  readonly #latest = new Map<number, { atMs: number; readings: TransportReading[] }>();
  readonly #pending = new Map<ConnectorId, Pick<TransportReading, 'events' | 'roundTrips'>>();

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Adds the readings of a thread; ignores other messages. */
  take(message: unknown): void {
    const { success, data } = transportMessage.safeParse(message);
    if (!success) return;
    this.#latest.set(data.thread, { atMs: this.#monotonicMs(), readings: data.http2 });
    for (const { connector, events, roundTrips } of data.http2) {
      const pending = this.#pending.get(connector) ?? { events: {}, roundTrips: [] };
      this.#pending.set(connector, pending);
      for (const [event, count] of Object.entries(events))
        pending.events[event] = (pending.events[event] ?? 0) + count;
      pending.roundTrips.push(...roundTrips);
      pending.roundTrips.splice(0, Math.max(0, pending.roundTrips.length - keptRoundTrips));
    }
  }

  /** Open connections of all threads. */
  get connections(): number {
    const freshAtMs = this.#monotonicMs() - staleAfterMs;
    return [...this.#latest.values()]
      .filter(({ atMs }) => atMs >= freshAtMs)
      .flatMap(({ readings }) => readings)
      .reduce((sum, { connections }) => sum + connections, 0);
  }

  reportTo(metrics: Metrics): void {
    for (const [connector, { events, roundTrips }] of this.#pending) {
      for (const [event, count] of Object.entries(events))
        metrics.http2Events.inc({ connector, event }, count);
      for (const seconds of roundTrips) metrics.http2RoundTripSeconds.observe({ connector }, seconds);
    }
    this.#pending.clear();
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
