import { z } from 'zod';
import { type KeyName, keyNames } from '../../../../shared/domain/apps/app.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { rotatedKey, shownKey } from '../../../replies/admin/apps.ts';
import { json, noBody, route, smallBody } from '../../../route.ts';

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
function keyOf({ key }: Record<string, string>): KeyName {
  const name = keyNames.find((known) => known === key);
  if (name) return name;
  throw refuse('notFound', detail('noKey', { names: keyNames.join(', ') }));
}

export default [
  route({
    method: 'GET',
    path: '/console/api/apps/:appId/keys/:key',
    operation: 'getKey',
    summary: 'Returns one key of an app (`appKey`, `masterKey`, `hookKey`).',
    auth: 'admin',
    role: 'owner',
    limit: noBody,
    reply: shownKey,
    refusals: ['notFound'],
    handle: async ({ operator, params }, { apps }) => {
      const key = keyOf(params);
      const app = await apps.read(operator, params.appId ?? '');
      return json({ key, value: app[key] });
    },
  }),
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
      return json(await apps.rotateKey(params.appId ?? '', keyOf(params), body.graceSeconds));
    },
  }),
];
