import { profileCheck, profileDetail } from '../../../replies/admin/gateways.ts';
import { json, noBody, route, smallBody } from '../../../route.ts';

/** Path of a push profile for operators (protocol/admin-api.md#profiles). */
const path = '/console/api/apps/:appId/profiles/:connector/:name';

const profileOf = ({ params }: { params: Record<string, string> }) => ({
  appId: params.appId ?? '',
  connector: params.connector ?? '',
  name: params.name ?? '',
});

export default [
  route({
    method: 'GET',
    path,
    operation: 'getProfile',
    summary:
      'Returns a push profile with its ids and settings, fingerprints of its secrets and its problems.',
    auth: 'admin',
    role: 'operator',
    limit: noBody,
    reply: profileDetail,
    refusals: ['notFound', 'timedOut'],
    handle: async (call, { profileDetails }) => json(await profileDetails.get(profileOf(call))),
  }),
  route({
    method: 'POST',
    path: `${path}/check`,
    operation: 'checkProfile',
    summary: 'Asks the gateway for an access token or a connection, within 8 s; sends nothing.',
    auth: 'admin',
    role: 'operator',
    changesNothing: true,
    limit: smallBody,
    reply: profileCheck,
    refusals: ['notFound', 'tooManyRequests'],
    handle: async (call, { profileChecks }) => json(await profileChecks.check(profileOf(call))),
  }),
];
