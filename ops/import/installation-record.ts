import type { ImportedInstallation } from '../../shared/db/tables/imports.ts';
import { refuse } from '../../shared/domain/errors/errors.ts';
import { hasWireName, isObjectHint, neutralName } from '../../shared/domain/installations/installation.ts';
import { draftOf } from '../../shared/domain/installations/members.ts';
import type { Json, JsonObject } from '../../shared/domain/json.ts';
import { say } from '../cli/language.ts';
import { headOf, membersOf } from './record.ts';

const headNames = new Set(['objectId', 'createdAt', 'updatedAt']);
const isKnown = (name: string, value: Json): boolean => headNames.has(name) || isObjectHint(name, value);

/**
 * Reads an installation of an export, with the same checks as a registration (shared/domain). Throws a refusal whose
 * message names the member and quotes no value.
 */
export function readInstallation(record: JsonObject, now: string): ImportedInstallation {
  const draft = draftOf(membersOf(record, isKnown, neutralName), hasWireName(record));
  if (draft.deviceToken === null && draft.installationId === null)
    throw refuse(
      'incorrectType',
      say('It has neither a deviceToken nor an installationId: nothing reaches it.'),
    );
  const { objectId, createdAt, updatedAt } = headOf(record, now);
  return { draft, objectId, createdAt, updatedAt, importedAt: now };
}
