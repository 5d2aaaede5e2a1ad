import type { z } from 'zod';
import type { Clock } from '../../shared/clock.ts';
import { createHttpClient, type HttpClient, type HttpTiming } from '../../shared/http/client.ts';
import type { HttpResult } from '../../shared/http/result.ts';

/** What each provider needs in addition to its URL. */
export interface ClientOptions {
  clock: Clock;
  timing: HttpTiming;
}

/** Concurrent connections. Further messages wait in the client's queue. */
const maxConnections = 8;

/** Opens the client of a provider. The base URL comes from the environment and may be private. */
export const openClient = (baseUrl: string, { clock, timing }: ClientOptions): HttpClient =>
  createHttpClient({ baseUrl, isTrustedUrl: true, connections: maxConnections, timing, clock });

/** Parses the JSON of a response. Returns undefined if there is none, or it has another form. */
export function parseReply<S extends z.ZodType>(
  shape: S,
  reply: HttpResult,
): z.infer<S> | undefined {
  if (reply.kind !== 'response') return undefined;
  try {
    return shape.safeParse(JSON.parse(reply.body)).data;
  } catch {
    return undefined;
  }
}
