import { z } from 'zod';
import {
  installationDocument,
  type StoredInstallation,
} from '../../../shared/domain/installations/installation.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import type { AppCall } from '../../calls/call.ts';
import { empty, listOf } from '../../replies/common.ts';
import {
  installation,
  installationPart,
  savedInstallation,
  updatedInstallation,
} from '../../replies/objects.ts';
import { ofCondition, ofInstallation, ofQuery } from '../../replies/refusals.ts';
import { installationChanges, registrationBody } from '../../requests/objects.ts';
import {
  createQuery,
  deleteQuery,
  installationListQuery,
  installationReadQuery,
  isFetching,
  updateQuery,
} from '../../requests/queries.ts';
import { installationBody, json, noBody, type Reply, route, smallBody } from '../../route.ts';
import type { Services } from '../../services/services.ts';

/**
 * Paths of installations (protocol/installations.md#calls-for-installations). Most SDKs use the
 * second path.
 */
const collection = ['/1.1/installations', '/1.1/classes/_Installation'];
const registered = z.union([savedInstallation, installation]);

const member = collection.map((path) => `${path}/:objectId`);

function members(document: JsonObject, names: string[]): JsonObject {
  return Object.fromEntries(Object.entries(document).filter(([name]) => names.includes(name)));
}

async function register(
  call: AppCall<z.infer<typeof createQuery>, JsonObject>,
  { installations }: Services,
): Promise<Reply> {
  const isWhole = isFetching(call.query);
  const { installation, isNew } = await installations.register(call, call.body, call.bodyBytes);
  const reply = isWhole
    ? installationDocument(installation, { hasAcl: false, hasSubscription: call.isMaster })
    : savedMembers(installation, isNew);
  return isNew
    ? json(reply, { status: 201, headers: { Location: installations.urlOf(installation) } })
    : json(reply);
}

function savedMembers(
  { objectId, createdAt, updatedAt }: StoredInstallation,
  isNew: boolean,
): JsonObject {
  const saved = { objectId, createdAt: createdAt.toISOString() };
  return isNew ? saved : { ...saved, updatedAt: updatedAt.toISOString() };
}

async function update(
  call: AppCall<z.infer<typeof updateQuery>, JsonObject>,
  { installations }: Services,
): Promise<Reply> {
  const isWhole = isFetching(call.query);
  const { document, changed } = await installations.update(call, call.params.objectId ?? '', {
    body: call.body,
    where: call.query.where,
  });
  const always = members(document, ['updatedAt', 'objectId']);
  return json(isWhole ? { ...changed, ...always } : always);
}

export default [
  route({
    method: 'POST',
    path: collection,
    operation: 'registerInstallation',
    summary:
      'Registers an installation. If an installation has the same device token or id, it is ' +
      'updated.',
    auth: 'app',
    limit: installationBody,
    session: 'optional',
    query: createQuery,
    body: registrationBody,
    reply: { 200: registered, 201: registered },
    refusals: [...ofInstallation, 'forbiddenWriteByAcl'],
    handle: register,
  }),
  route({
    method: 'PUT',
    path: member,
    operation: 'updateInstallation',
    summary:
      'Changes members of an installation. If it was deleted and the body names a device, it ' +
      'is created again under its id.',
    auth: 'app',
    limit: installationBody,
    session: 'optional',
    query: updateQuery,
    body: installationChanges,
    reply: updatedInstallation,
    refusals: [...ofInstallation, ...ofCondition, 'noSuchObject', 'forbiddenWriteByAcl'],
    handle: update,
  }),
  route({
    method: 'GET',
    path: collection,
    operation: 'listInstallations',
    summary: 'Lists installations that match `where`.',
    auth: 'app',
    limit: noBody,
    session: 'optional',
    query: installationListQuery,
    reply: listOf(installationPart),
    refusals: [...ofQuery],
    handle: async (call, { installations }) => json(await installations.list(call, call.query)),
  }),
  route({
    method: 'GET',
    path: member,
    operation: 'getInstallation',
    summary: 'Returns an installation.',
    auth: 'app',
    limit: noBody,
    session: 'optional',
    query: installationReadQuery,
    reply: installationPart,
    refusals: [...ofQuery, 'forbiddenReadByAcl'],
    handle: async (call, { installations }) =>
      json(await installations.get(call, call.params.objectId ?? '', call.query)),
  }),
  route({
    method: 'DELETE',
    path: member,
    operation: 'deleteInstallation',
    summary: 'Deletes an installation.',
    auth: 'app',
    limit: smallBody,
    session: 'optional',
    query: deleteQuery,
    reply: empty,
    refusals: [...ofCondition, 'forbiddenDelete', 'forbiddenWriteByAcl'],
    handle: async (call, { installations }) => {
      await installations.delete(call, call.params.objectId ?? '', call.query.where);
      return json({});
    },
  }),
];
