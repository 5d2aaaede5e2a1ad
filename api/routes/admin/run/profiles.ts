import { z } from 'zod';
import type { ProfileRotation } from '../../../../shared/db/tables/profiles.ts';
import { enoughRecipients } from '../../../../shared/domain/apps/canary.ts';
import { flagQuery } from '../../../../shared/domain/client-values.ts';
import { jsonValue } from '../../../../shared/domain/json-schema.ts';
import { profileCheck, profileDetail } from '../../../replies/admin/gateways.ts';
import { profileRotation } from '../../../replies/admin/rotations.ts';
import { json, noBody, operatorBody, route, smallBody } from '../../../route.ts';

/** Path of a push profile for operators (protocol/admin-api.md#profiles). */
const path = '/console/api/apps/:appId/profiles/:connector/:name';

const profileOf = ({ params }: { params: Record<string, string> }) => ({
  appId: params.appId ?? '',
  connector: params.connector ?? '',
  name: params.name ?? '',
});

/** Rotation of credentials by a canary (protocol/admin-api.md#rotation-of-credentials). */
const candidatePath = `${path}/candidate`;

const credentials = z.record(z.string(), jsonValue, 'expected an object');

const stageQuery = z.object({
  hold: flagQuery.describe(
    '1: after the check the candidate waits for a promotion, and no push tries it.',
  ),
});

/** Returns a rotation in the form of the admin API. */
function toPublic(rotation: ProfileRotation) {
  const { appId: _, stagedAt, changedAt, hasPrevious, ...rest } = rotation;
  return {
    ...rest,
    stagedAt: stagedAt.toISOString(),
    changedAt: changedAt.toISOString(),
    mayRollBack: rotation.state === 'promoted' ? hasPrevious : rotation.state !== 'rolled_back',
    enough: enoughRecipients,
  };
}

export default [
  route({
    method: 'GET',
    path,
    operation: 'getProfile',
    summary:
      'Returns a push profile with its ids and settings, fingerprints of its secrets and its ' +
      'problems.',
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
    summary:
      'Requests an access token or a connection from the gateway, within 8 s. Sends no push.',
    auth: 'admin',
    role: 'operator',
    changesNothing: true,
    limit: smallBody,
    reply: profileCheck,
    refusals: ['notFound', 'tooManyRequests'],
    handle: async (call, { profileChecks }) => json(await profileChecks.check(profileOf(call))),
  }),
  route({
    method: 'PUT',
    path: candidatePath,
    operation: 'stageProfile',
    summary:
      'Stages a second version of the credentials, checks it at the gateway, and tries it on ' +
      '1 % of the batches of pushes.',
    auth: 'admin',
    role: 'operator',
    limit: operatorBody,
    query: stageQuery,
    body: credentials,
    reply: profileRotation,
    refusals: ['notFound', 'tooManyRequests', 'forbidden'],
    handle: async (call, { profileRotations }) => {
      const options = { waitsForPromotion: call.query.hold === true, role: call.operator.role };
      return json(toPublic(await profileRotations.stage(profileOf(call), call.body, options)));
    },
  }),
  route({
    method: 'GET',
    path: candidatePath,
    operation: 'getProfileRotation',
    summary: 'Shows the last rotation of the credentials of a profile, without credentials.',
    auth: 'admin',
    role: 'operator',
    limit: noBody,
    reply: profileRotation,
    refusals: ['notFound'],
    handle: async (call, { profileRotations }) =>
      json(toPublic(await profileRotations.get(profileOf(call)))),
  }),
  route({
    method: 'POST',
    path: `${candidatePath}/promote`,
    operation: 'promoteProfile',
    summary:
      'Makes the checked candidate the current version. The replaced version is kept for 7 days.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    reply: profileRotation,
    refusals: ['notFound', 'conflict'],
    handle: async (call, { profileRotations }) =>
      json(toPublic(await profileRotations.promote(profileOf(call)))),
  }),
  route({
    method: 'POST',
    path: `${candidatePath}/rollback`,
    operation: 'rollBackProfile',
    summary: 'Drops the candidate, or restores the version before the last promotion.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    reply: profileRotation,
    refusals: ['notFound', 'conflict'],
    handle: async (call, { profileRotations }) =>
      json(toPublic(await profileRotations.rollBack(profileOf(call)))),
  }),
];
