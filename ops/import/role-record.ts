import type { StagedMembership, StagedRole } from '../../shared/db/tables/imports.ts';
import { refuse } from '../../shared/domain/errors/errors.ts';
import { isPublicId } from '../../shared/domain/installations/identity.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { defaultRoleAcl, readRoleName, requireRoleSize } from '../../shared/domain/roles/role.ts';
import { checkFields } from '../../shared/domain/users/user.ts';
import { say } from '../cli/language.ts';
import { aclOf, headOf, membersOf } from './record.ts';

/** Members that are not stored as fields of the app. The members of a role are in separate files. */
const knownMembers = new Set(['objectId', 'createdAt', 'updatedAt', 'name', 'ACL', 'users', 'roles']);
const isKnown = (name: string, value: Json): boolean =>
  knownMembers.has(name) || name.startsWith('_') || (name === 'className' && value === '_Role');

/**
 * Reads a role of an export, with the same checks as a created role. A role without an ACL gets the default of the master
 * key, so that no further users can change it. Throws a refusal whose message quotes no value.
 */
export function readRole(record: JsonObject, { line, now }: { line: number; now: string }): StagedRole {
  const head = headOf(record, now);
  const draft = {
    name: readRoleName(record.name),
    acl: aclOf(record.ACL) ?? defaultRoleAcl,
    fields: checkFields(membersOf(record, isKnown), 'A role'),
  };
  requireRoleSize(draft);
  return { line, draft, ...head };
}

/** Reads a line of `_Join:users:_Role` or `_Join:roles:_Role`: `{"owningId","relatedId"}`, ids or pointers. Throws 104. */
export function readMembership(record: JsonObject, { line }: { line: number }): StagedMembership {
  const [role, member] = [idUnder(record, 'owningId'), idUnder(record, 'relatedId')];
  return { line, objectId: `${role} ${member}`, role, member };
}

function idUnder(record: JsonObject, name: 'owningId' | 'relatedId'): string {
  const value = record[name];
  const id = isJsonObject(value) ? value.objectId : value;
  if (typeof id === 'string' && isPublicId(id)) return id;
  throw refuse('missingObjectId', say('{name} is missing or is no id.', { name }));
}
