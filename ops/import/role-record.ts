import type { StagedMembership, StagedRole } from '../../shared/db/tables/import/roles.ts';
import { refuse } from '../../shared/domain/errors/errors.ts';
import { isPublicId } from '../../shared/domain/installations/identity.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { defaultRoleAcl, readRoleName, requireRoleSize } from '../../shared/domain/roles/changes.ts';
import { checkFields } from '../../shared/domain/users/members.ts';
import { aclOf, headOf, membersOf } from './record.ts';

/** Members that have a place of their own, or none: the members of a role come in files of their own. */
const ownNames = new Set(['objectId', 'createdAt', 'updatedAt', 'name', 'ACL', 'users', 'roles']);
const isOwn = (name: string, value: Json): boolean =>
  ownNames.has(name) || name.startsWith('_') || (name === 'className' && value === '_Role');

/**
 * A role of an export, by the rules of those that clients make. One without an ACL gets the master key's default: nobody
 * is to join it who could not before. Throws a refusal whose sentence quotes no value.
 */
export function readRole(record: JsonObject, { line, now }: { line: number; now: Date }): StagedRole {
  const head = headOf(record, now);
  const draft = {
    name: readRoleName(record.name),
    acl: aclOf(record.ACL) ?? defaultRoleAcl,
    fields: checkFields(membersOf(record, isOwn), 'A role'),
  };
  requireRoleSize(draft);
  return { line, draft, ...head };
}

/** A line of `_Join:users:_Role` or `_Join:roles:_Role`: `{"owningId","relatedId"}`, ids or pointers. Throws 104. */
export function readMembership(record: JsonObject, { line }: { line: number }): StagedMembership {
  const [role, member] = [idUnder(record, 'owningId'), idUnder(record, 'relatedId')];
  return { line, objectId: `${role} ${member}`, role, member };
}

function idUnder(record: JsonObject, name: 'owningId' | 'relatedId'): string {
  const value = record[name];
  const id = isJsonObject(value) ? value.objectId : value;
  if (typeof id === 'string' && isPublicId(id)) return id;
  throw refuse('missingObjectId', `${name} is missing or is no id.`);
}
