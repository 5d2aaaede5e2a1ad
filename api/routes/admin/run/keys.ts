import { z } from 'zod';
import { keyNames } from '../../../../shared/domain/apps/identity.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { rotatedKey } from '../../../replies/admin/apps.ts';
import { json, route, smallBody } from '../../../route.ts';

const maxGraceSeconds = 365 * 24 * 3600;

const rotation = z.strictObject({
  graceSeconds: z
    .int('expected a whole number')
    .min(0, 'must be at least 0')
    .max(maxGraceSeconds, `must be at most ${maxGraceSeconds}`)
    .default(3600)
    .describe('How long the old key stays valid.'),
});

/** Keys of an app (protocol/admin-api.md#keys). */
export default [
  route({
    method: 'POST',
    path: '/console/api/apps/:appId/keys/:key/rotate',
    operation: 'rotateKey',
    summary:
      'Replaces a key of an app (`appKey`, `masterKey`, `hookKey`); the old one stays valid for some time.',
    auth: 'admin',
    role: 'owner',
    limit: smallBody,
    body: rotation,
    reply: rotatedKey,
    refusals: ['notFound'],
    handle: async ({ params, body }, { apps }) => {
      const name = keyNames.find((known) => known === params.key);
      if (!name) throw refuse('notFound', `There is no such key: expected one of ${keyNames.join(', ')}.`);
      return json(await apps.rotateKey(params.appId ?? '', name, body.graceSeconds));
    },
  }),
];
