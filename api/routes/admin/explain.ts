import { z } from 'zod';
import { json, noBody, operatorBody, route } from '../../route.ts';

/** What people ask when a push does not do what they thought (protocol/admin-api.md#calls). */
const appPath = '/console/api/apps/:appId';

const dictionary = z.record(z.string(), z.json());

export default [
  route({
    method: 'GET',
    path: `${appPath}/notifications/:objectId/devices/:installation`,
    summary: 'Explains why a device did or did not get a push.',
    auth: 'admin',
    limit: noBody,
    handle: async ({ params }, { pushTraces }) =>
      json(await pushTraces.explain(params.appId ?? '', params.objectId ?? '', params.installation ?? '')),
  }),
  route({
    method: 'POST',
    path: `${appPath}/push/explain`,
    summary:
      'Tells what a push would do, and sends nothing: audience, payloads, limits and time. The body is that of `POST /1.1/push`.',
    auth: 'admin',
    limit: operatorBody,
    body: dictionary,
    handle: async (call, { dryRun }) => json(await dryRun.explain(call.params.appId ?? '', call)),
  }),
];
