import type { StagedInstallation } from '../../shared/db/tables/import/installations.ts';
import { refuse } from '../../shared/domain/errors/errors.ts';
import { isObjectHint, isWireName, neutralName } from '../../shared/domain/installations/installation.ts';
import { draftOf } from '../../shared/domain/installations/members.ts';
import type { Json, JsonObject } from '../../shared/domain/json.ts';
import type { Members } from '../../shared/domain/objects/operations.ts';
import { headOf, membersOf } from './record.ts';

const headNames = new Set(['objectId', 'createdAt', 'updatedAt']);
const isKnown = (name: string, value: Json): boolean => headNames.has(name) || isObjectHint(name, value);

/**
 * Reads an installation of an export, with the same checks as a registration (shared/domain). Throws a refusal whose
 * message names the member and quotes no value.
 */
export function readInstallation(
  record: JsonObject,
  { line, now }: { line: number; now: Date },
): StagedInstallation {
  const members = membersOf(record, isKnown);
  const neutral: Members = new Map();
  let hasWireNames = false;
  for (const [name, value] of members) {
    hasWireNames ||= isWireName(name) === true;
    neutral.set(neutralName(name), value);
  }
  const draft = draftOf(neutral, hasWireNames);
  if (draft.deviceToken === null && draft.installationId === null)
    throw refuse('incorrectType', 'It has neither a deviceToken nor an installationId: nothing reaches it.');
  return { line, draft, ...headOf(record, now), importedAt: now.toISOString() };
}
