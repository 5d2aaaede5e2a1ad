import { z } from 'zod';

/** Message of a sink when it listens. */
export const sinkReady = z.object({ url: z.string(), ca: z.string() });

/** Message of a sink on request. */
export const sinkCounts = z.object({ requests: z.number(), bodyBytes: z.number() });
