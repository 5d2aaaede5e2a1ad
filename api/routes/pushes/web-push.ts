import { z } from 'zod';
import { webPushKey } from '../../replies/objects.ts';
import { json, noBody, route } from '../../route.ts';

/** Name of a push profile. */
const query = z.object({
  deviceProfile: z
    .string()
    .regex(/^(?:_default|[A-Za-z][A-Za-z0-9_]{0,63})?$/, 'must be the name of a push profile')
    .optional()
    .describe('Name of the Web Push profile. `_default` by default.'),
});

export default [
  route({
    method: 'GET',
    path: '/1.1/webpush/key',
    operation: 'getWebPushKey',
    summary: 'Returns the VAPID key with which pages subscribe to Web Push.',
    auth: 'app',
    limit: noBody,
    query,
    reply: webPushKey,
    refusals: ['notFound', 'invalidParameter'],
    handle: async (call, { webPushKeys }) =>
      json(await webPushKeys.current(call.app.appId, call.query.deviceProfile)),
  }),
];
