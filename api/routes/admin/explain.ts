import { queryBody } from '../../../shared/domain/pushes/body.ts';
import { deviceExplanation, pushForecast } from '../../replies/admin/pushes.ts';
import { ofPush } from '../../replies/refusals.ts';
import { parsedByService } from '../../requests/checked.ts';
import { json, noBody, operatorBody, route } from '../../route.ts';

/** Explanations of a push, before and after it is sent (protocol/admin-api.md#calls). */
const appPath = '/console/api/apps/:appId';

export default [
  route({
    method: 'GET',
    path: `${appPath}/notifications/:objectId/devices/:installation`,
    operation: 'explainDevice',
    summary: 'Explains why a device did or did not get a push.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    reply: deviceExplanation,
    refusals: ['notFound', 'objectNotFound'],
    handle: async ({ params }, { pushTraces }) =>
      json(await pushTraces.explain(params.appId ?? '', params.objectId ?? '', params.installation ?? '')),
  }),
  route({
    method: 'POST',
    path: `${appPath}/push/explain`,
    operation: 'explainPush',
    summary:
      'Tells what a push would do, and sends nothing: audience, payloads, limits and time. The body is that of `POST /1.1/push`.',
    auth: 'admin',
    role: 'sender',
    changesNothing: true,
    limit: operatorBody,
    body: parsedByService(queryBody),
    reply: pushForecast,
    refusals: ['notFound', ...ofPush],
    handle: async (call, { dryRun }) =>
      json(await dryRun.explain(call.operator, call.params.appId ?? '', call)),
  }),
];
