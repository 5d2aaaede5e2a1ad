import { z } from 'zod';
import type { JsonObject } from '../../../shared/domain/json.ts';
import type { AppCall } from '../../calls/call.ts';
import { empty } from '../../replies/common.ts';
import { createdRole, role, roleList, rolePart, updatedRole } from '../../replies/objects.ts';
import { ofCondition, ofQuery, ofRole } from '../../replies/refusals.ts';
import { roleBody, roleChanges } from '../../requests/objects.ts';
import {
  createQuery,
  deleteQuery,
  isFetching,
  objectReadQuery,
  roleListQuery,
  updateQuery,
} from '../../requests/queries.ts';
import { json, type Limit, noBody, type Reply, route, smallBody } from '../../route.ts';
import type { Services } from '../../services/services.ts';

/**
 * Paths of roles (protocol/roles.md#role-fields). Most SDKs use the second path
 * (protocol/clients.md#calls-of-the-javascript-sdk).
 */
const collection = ['/1.1/roles', '/1.1/classes/_Role'];
const member = collection.map((path) => `${path}/:objectId`);

async function create(
  call: AppCall<z.infer<typeof createQuery>, JsonObject>,
  { roles }: Services,
): Promise<Reply> {
  const isWhole = isFetching(call.query);
  const { document } = await roles.create(call, call.body);
  const { objectId, createdAt } = document;
  const reply = isWhole ? document : { objectId, createdAt };
  return json(reply, { status: 201, headers: { Location: roles.urlOf(document) } });
}

async function update(
  call: AppCall<z.infer<typeof updateQuery>, JsonObject>,
  { roles }: Services,
): Promise<Reply> {
  const isWhole = isFetching(call.query);
  const { document, changed } = await roles.update(call, call.params.objectId ?? '', {
    body: call.body,
    where: call.query.where,
  });
  const { updatedAt, objectId } = document;
  return json({ ...(isWhole ? changed : {}), updatedAt, objectId });
}

/**
 * Body limit of calls with a role: two relations, each with ten operations of a thousand pointers.
 */
const limit: Limit = { bodyBytesBelow: 2 * 1024 * 1024, isObject: true };

export default [
  route({
    method: 'POST',
    path: collection,
    operation: 'createRole',
    summary: 'Creates a role with a `name`, an `ACL`, and members.',
    auth: 'app',
    limit,
    session: 'optional',
    query: createQuery,
    body: roleBody,
    reply: { 201: z.union([createdRole, role]) },
    refusals: [...ofRole, 'forbiddenCreate', 'thresholdExceeded'],
    handle: create,
  }),
  route({
    method: 'PUT',
    path: member,
    operation: 'updateRole',
    summary: 'Changes the members or the ACL of a role.',
    auth: 'app',
    limit,
    session: 'optional',
    query: updateQuery,
    body: roleChanges,
    reply: updatedRole,
    refusals: [...ofRole, ...ofCondition, 'noSuchObject', 'forbiddenWriteByAcl'],
    handle: update,
  }),
  route({
    method: 'GET',
    path: collection,
    operation: 'listRoles',
    summary: 'Lists roles that match `where`.',
    auth: 'app',
    limit: noBody,
    session: 'optional',
    query: roleListQuery,
    reply: roleList,
    refusals: [...ofQuery],
    handle: async (call, { roleLookup }) => json(await roleLookup.list(call, call.query)),
  }),
  route({
    method: 'GET',
    path: member,
    operation: 'getRole',
    summary: 'Returns a role.',
    auth: 'app',
    limit: noBody,
    session: 'optional',
    query: objectReadQuery,
    reply: rolePart,
    refusals: [...ofQuery, 'forbiddenReadByAcl'],
    handle: async (call, { roleLookup }) =>
      json(await roleLookup.get(call, call.params.objectId ?? '', call.query)),
  }),
  route({
    method: 'DELETE',
    path: member,
    operation: 'deleteRole',
    summary: 'Deletes a role.',
    auth: 'app',
    limit: smallBody,
    session: 'optional',
    query: deleteQuery,
    reply: empty,
    refusals: [...ofCondition, 'forbiddenWriteByAcl'],
    handle: async (call, { roles }) => {
      await roles.delete(call, call.params.objectId ?? '', call.query.where);
      return json({});
    },
  }),
];
