import { z } from 'zod';
import { acl, listOf, stored, updated } from './common.ts';
import { component } from './component.ts';
import { userPart } from './users.ts';

const relation = (className: '_User' | '_Role') =>
  z.strictObject({ __type: z.literal('Relation'), className: z.literal(className).optional() });

const ofRole = {
  name: z.string(),
  users: relation('_User'),
  roles: relation('_Role'),
  ACL: acl.optional().describe('With `returnACL=true`.'),
};

export const role = component(
  'Role',
  z.looseObject({ ...ofRole, ...stored }).describe('Role with members of the app’s own.'),
);

export const rolePart = component(
  'RolePart',
  z
    .looseObject({ ...ofRole, ...stored })
    .partial()
    .describe('Role, or those of its members that `keys` names.'),
);

/** Reply to a new role without `fetchWhenSave=true`. */
export const createdRole = component(
  'CreatedRole',
  z.strictObject({ objectId: stored.objectId, createdAt: stored.createdAt }),
);

export const updatedRole = component('UpdatedRole', z.looseObject(ofRole).partial().extend(updated));

/** Members of a relation, whose class the caller does not know (`redirectClassNameForKey`). */
const members = <C extends string, S extends z.ZodType>(className: C, item: S) =>
  listOf(item).extend({ className: z.literal(className) });

export const roleList = component(
  'RoleList',
  z
    .union([listOf(rolePart), members('_User', userPart), members('_Role', rolePart)])
    .describe('Roles; with `redirectClassNameForKey` members of a relation and their class.'),
);
