import { z } from 'zod';
import { noBody, route } from '../../../route.ts';

const maxLength = 2000;
const maxTopics = 10;

const eventsQuery = z.object({
  topics: z
    .string('expected topics, separated by commas')
    .min(1, 'must not be empty')
    .max(maxLength, 'is too long')
    .transform((text) => text.split(','))
    .pipe(z.array(z.string()).max(maxTopics, `expected at most ${maxTopics} topics`))
    .describe(
      '`push:<appId>/<objectId>`, `overview:<appId>`, `overview`, `breakers`, `queues`; several with commas.',
    ),
});

/** Live updates (protocol/admin-api.md#live-updates). */
export default [
  route({
    method: 'GET',
    path: '/console/api/events',
    operation: 'streamEvents',
    summary: 'Streams changes of pushes, the overview, breakers and queues as server-sent events.',
    auth: 'admin',
    role: 'viewer',
    isFiltered: true,
    limit: noBody,
    query: eventsQuery,
    reply: { 200: { contentType: 'text/event-stream' } },
    refusals: ['notFound', 'objectNotFound'],
    handle: async ({ operator, query }, { events }) => ({
      body: await events.open(operator, query.topics),
      type: 'text/event-stream; charset=utf-8',
      // Proxies must not collect events; the connection ends with the stream, so that a stopping server waits for nothing.
      headers: { 'X-Accel-Buffering': 'no', Connection: 'close' },
    }),
  }),
];
