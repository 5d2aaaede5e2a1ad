import { type AppCall, largestBody, noBody, type Reply, route } from '../../route.ts';
import type { FunctionReply } from '../../services/functions/functions.ts';
import type { Services } from '../../services/services.ts';

const replyWith = ({ status, headers, body }: FunctionReply): Reply => ({ status, headers, body });

const summaries = {
  functions: 'Calls a cloud function with the body as its parameters; values are plain JSON.',
  call: 'Calls a cloud function; objects in parameters and result keep their types (`__type`).',
} as const;

/** protocol/functions.md#function-calls. */
const run = (encoding: 'functions' | 'call') =>
  route({
    method: 'POST',
    path: `/1.1/${encoding}/:name`,
    summary: summaries[encoding],
    auth: 'app',
    isPassedOn: true,
    limit: largestBody,
    handle: async (call: AppCall<unknown, unknown>, { functions }: Services) => {
      // A call inside another (a batch) was read with it.
      const sent = call.sent ?? asSent(JSON.stringify(call.body));
      return replyWith(await functions.call(call, { encoding, name: call.params.name ?? '', sent }));
    },
  });

const asSent = (text: string) => ({ text, userAgent: '', clientAgent: '', via: '' });

export default [
  run('functions'),
  run('call'),
  route({
    method: 'GET',
    path: '/1.1/functions/_ops/metadatas',
    summary: 'Lists the cloud functions and hooks that the function host of the app declares.',
    auth: 'app',
    limit: noBody,
    handle: async (call, { functions }) => replyWith(await functions.metadatas(call)),
  }),
];
