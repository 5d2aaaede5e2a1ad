import type { App } from '../../shared/domain/apps/app.ts';
import type { TestApi, TestResponse } from './api.ts';

let serial = 0;
/** Returns a unique role name. */
export const newRoleName = (): string => `role_${++serial}`;

export const pointerTo = (className: string, objectId: string) => ({
  __type: 'Pointer',
  className,
  objectId,
});

/** Returns the operation that adds these users or roles to a relation. */
export const adding = (className: '_User' | '_Role', ...objectIds: string[]) => ({
  __op: 'AddRelation',
  objects: objectIds.map((id) => pointerTo(className, id)),
});

export const removing = (className: '_User' | '_Role', ...objectIds: string[]) => ({
  ...adding(className, ...objectIds),
  __op: 'RemoveRelation',
});

export interface TestRole {
  id: string;
  name: string;
}

/** Creates a role with the master key. Everyone can read it; only the master key can change it. */
export async function createRole(
  api: TestApi,
  app: App,
  {
    users = [],
    roles = [],
    ...more
  }: { users?: string[]; roles?: string[]; [member: string]: unknown } = {},
): Promise<TestRole> {
  const name = newRoleName();
  const reply = await api.request('POST', '/1.1/roles', {
    app,
    master: true,
    body: {
      name,
      ACL: { '*': { read: true } },
      ...(users.length > 0 ? { users: adding('_User', ...users) } : {}),
      ...(roles.length > 0 ? { roles: adding('_Role', ...roles) } : {}),
      ...more,
    },
  });
  if (reply.status !== 201) throw new Error(`role: ${reply.status} ${JSON.stringify(reply.body)}`);
  return { id: reply.body.objectId, name: typeof more.name === 'string' ? more.name : name };
}

/** Changes a role with the master key. */
export function changeRole(
  api: TestApi,
  app: App,
  { id }: TestRole,
  body: object,
): Promise<TestResponse> {
  return api.request('PUT', `/1.1/roles/${id}`, { app, master: true, body });
}

/** Adds a condition to a path. */
export const withWhere = (path: string, where: object, more: Record<string, string> = {}): string =>
  `${path}?${new URLSearchParams({ where: JSON.stringify(where), ...more })}`;

/** Returns the sorted ids in a list reply. */
export const idsIn = ({ body }: TestResponse): string[] =>
  (body.results ?? []).map(({ objectId }: { objectId: string }) => objectId).sort();
