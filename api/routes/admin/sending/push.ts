import { z } from 'zod';
import { devicesBody, queryBody } from '../../../../shared/domain/pushes/body.ts';
import type { Language } from '../../../../shared/domain/texts/catalogue.ts';
import { detail, warningsIn, writeText } from '../../../../shared/domain/texts/texts.ts';
import { movedAudience, sentPush } from '../../../replies/admin/sending.ts';
import { ofPush } from '../../../replies/refusals.ts';
import { parsedByService } from '../../../requests/checked.ts';
import { json, type Reply, route } from '../../../route.ts';
import type { SentPush } from '../../../services/operator/sending/sending.ts';
import type { MovedAudience } from '../../../services/push/explain/dry-run.ts';

/** Pushes by callers of the admin API (protocol/admin-api.md#sending). */

/** Limit of a call with ids, as of POST /1.1/push/devices. */
const bodyBytesBelow = 512 * 1024;

const sendQuery = z.object({
  undoSeconds: z.coerce
    .number('expected a number of seconds')
    .int('expected whole seconds')
    .min(0)
    .max(60, 'must be at most 60')
    .default(0)
    .describe('The push is scheduled so many seconds ahead, in which it can be cancelled.'),
});

/** Returns the reply to an accepted push. */
const sent = (language: Language, { objectId, createdAt, status, warnings }: SentPush): Reply =>
  json(
    { objectId, createdAt: createdAt.toISOString(), status, ...warningsIn(language, warnings) },
    { status: 201 },
  );

function moved(language: Language, { devices, explained, digest }: MovedAudience): Reply {
  const text =
    explained === undefined
      ? detail('noDryRun', { devices })
      : detail('audienceMoved', { devices, explained });
  const error = writeText('details', text, language);
  return json({ code: 409, error, devices, explained: explained ?? null, digest }, { status: 409 });
}

export default [
  route({
    method: 'POST',
    path: '/console/api/apps/:appId/push',
    operation: 'sendAppPush',
    summary:
      'Sends a push; the body is that of `POST /1.1/push` or `POST /1.1/push/devices`. `Idempotency-Key` is its `req_id`. With the digest of a dry run in `X-Carillon-Explained`, 409 where the audience moved by more than 5 %.',
    auth: 'admin',
    role: 'sender',
    limit: { rate: 'push', bodyBytesBelow, isObject: true },
    isBodyRequired: true,
    query: sendQuery,
    body: parsedByService(z.union([queryBody, devicesBody])),
    status: 201,
    reply: { 201: sentPush, 409: movedAudience },
    refusals: ['notFound', ...ofPush],
    handle: async (call, { sending }) => {
      const { operator, params, body, bodyBytes, prodHeader, idempotencyKey, explained } = call;
      const request = { body, bodyBytes, prodHeader, idempotencyKey, explained, ...call.query };
      const result = await sending.send(operator, params.appId ?? '', request);
      return 'objectId' in result ? sent(call.language, result) : moved(call.language, result);
    },
  }),
];
