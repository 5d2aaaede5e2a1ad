import { z } from 'zod';

/** What a sink says when it listens. */
export const sinkReady = z.object({ url: z.string(), ca: z.string() });

/** What it says whenever it is asked. */
export const sinkCounts = z.object({ requests: z.number(), bodyBytes: z.number() });
