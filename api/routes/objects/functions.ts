import type { AppCall } from '../../calls/call.ts';
import { functionResult } from '../../replies/objects.ts';
import { ofFunctionHost } from '../../replies/refusals.ts';
import { largestBody, noBody, type Reply, route } from '../../route.ts';
import type { FunctionReply } from '../../services/functions/functions.ts';
import type { Services } from '../../services/services.ts';

/** Removes a session token that was not verified. Function hosts get only verified tokens. */
const withCheckedSession = (call: AppCall<unknown, unknown>): AppCall<unknown, unknown> =>
  call.session ? call : { ...call, sessionToken: undefined };

const replyWith = ({ status, headers, body }: FunctionReply): Reply => ({ status, headers, body });

const operations = { functions: 'runFunction', call: 'callFunction' } as const;

const summaries = {
  functions: 'Calls a cloud function with the body as its parameters. Values are plain JSON.',
  call: 'Calls a cloud function. Objects in parameters and result keep their types (`__type`).',
} as const;

/** Declares a call of a function (protocol/functions.md#function-calls). */
const run = (encoding: 'functions' | 'call') =>
  route({
    method: 'POST',
    path: `/1.1/${encoding}/:name`,
    operation: operations[encoding],
    summary: summaries[encoding],
    auth: 'app',
    session: 'optional',
    forwardsBody: true,
    limit: largestBody,
    reply: { default: functionResult },
    refusals: ofFunctionHost,
    handle: async (call: AppCall<unknown, unknown>, { functions }: Services) => {
      // The body of a call in a batch is already parsed.
      const sent = call.sent ?? asSent(JSON.stringify(call.body));
      return replyWith(
        await functions.call(withCheckedSession(call), {
          encoding,
          name: call.params.name ?? '',
          sent,
        }),
      );
    },
  });

const asSent = (text: string) => ({ text, userAgent: '', clientAgent: '', via: '' });

export default [
  run('functions'),
  run('call'),
  route({
    method: 'GET',
    path: '/1.1/functions/_ops/metadatas',
    operation: 'listFunctions',
    summary: 'Lists the cloud functions and hooks that the function host of the app declares.',
    auth: 'app',
    session: 'optional',
    limit: noBody,
    reply: { default: functionResult },
    refusals: ofFunctionHost,
    handle: async (call, { functions }) =>
      replyWith(await functions.metadatas(withCheckedSession(call))),
  }),
];
