import { type AppCall, type Reply, route } from '../route.ts';
import type { FunctionReply } from '../services/functions/functions.ts';
import type { Services } from '../services/services.ts';

/** push.md "Cloud functions"; compat.md 7. */
const bodyBytesBelow = 20 * 1024 * 1024;

const replyWith = ({ status, headers, body }: FunctionReply): Reply => ({ status, headers, body });

const run = (encoding: 'functions' | 'call') =>
  route({
    method: 'POST',
    path: `/1.1/${encoding}/:name`,
    auth: 'app',
    isStreamed: true,
    limit: { bodyBytesBelow },
    handle: async (call: AppCall<unknown, unknown>, { functions }: Services) => {
      // A call inside another (a batch) was read with it.
      const { stream } = call;
      const sent = stream ?? asSent(JSON.stringify(call.body));
      return replyWith(await functions.call(call, { encoding, name: call.params.name ?? '', sent }));
    },
  });

const asSent = (body: string) => ({
  body,
  length: Buffer.byteLength(body),
  userAgent: '',
  clientAgent: '',
  via: '',
});

export default [
  run('functions'),
  run('call'),
  route({
    method: 'GET',
    path: '/1.1/functions/_ops/metadatas',
    auth: 'app',
    handle: async (call, { functions }) => replyWith(await functions.metadatas(call)),
  }),
];
