import type { Json, JsonObject } from '../json.ts';
import type { Acl } from '../objects/acl.ts';

/** Relations of a role and the classes of their members (protocol/roles.md#membership). */
export const roleRelations = { users: '_User', roles: '_Role' } as const;
export type RelationName = keyof typeof roleRelations;

/** Client-writable members of a role, without its relations. */
export interface RoleDraft {
  /** Name in ACLs; it never changes. */
  name: string;
  /** ACL of the role itself. */
  acl: Acl;
  /** Custom members. */
  fields: JsonObject;
}

/** Role of an app, as its row stores it (protocol/roles.md#role-fields). Its members are rows of other tables. */
export interface Role extends RoleDraft {
  /** Internal id within the app; never revealed. */
  id: number;
  objectId: string;
  createdAt: Date;
  updatedAt: Date;
}

/** Returns a role as replies show it; the ACL with `returnACL=true` only (protocol/queries.md#query-parameters). */
export function roleDocument(role: Role, { hasAcl }: { hasAcl: boolean }): JsonObject {
  return Object.fromEntries<Json>([
    ...Object.entries(role.fields),
    ['name', role.name],
    ...Object.entries(roleRelations).map(([name, className]): [string, Json] => [
      name,
      { __type: 'Relation', className },
    ]),
    ['objectId', role.objectId],
    ['createdAt', role.createdAt.toISOString()],
    ['updatedAt', role.updatedAt.toISOString()],
    ...(hasAcl ? [['ACL', role.acl] as [string, Json]] : []),
  ]);
}
