import type { Json, JsonObject } from '../json.ts';
import type { Acl } from '../objects/acl.ts';

/** The relations of a role and the classes of their members (protocol/roles.md#membership). */
export const roleRelations = { users: '_User', roles: '_Role' } as const;
export type RelationName = keyof typeof roleRelations;

/** What clients decide of a role, but for its members. */
export interface RoleDraft {
  /** What ACLs call it by; never changes. */
  name: string;
  /** Who may see and change the role itself. */
  acl: Acl;
  /** Every other member. */
  fields: JsonObject;
}

/** A role of an app (protocol/roles.md#role-fields), as its row holds it. Members are rows of their own. */
export interface Role extends RoleDraft {
  /** Key within the app; never shown. */
  id: number;
  objectId: string;
  createdAt: Date;
  updatedAt: Date;
}

/** The role as replies show it; the ACL with `returnACL=true` only (protocol/queries.md#query-parameters). */
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
