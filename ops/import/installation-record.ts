import type { StagedInstallation } from '../../shared/db/tables/import/installations.ts';
import { refuse } from '../../shared/domain/errors/errors.ts';
import { isObjectHint, isWireName, neutralName } from '../../shared/domain/installations/installation.ts';
import { draftOf } from '../../shared/domain/installations/members.ts';
import type { Json, JsonObject } from '../../shared/domain/json.ts';
import type { Members } from '../../shared/domain/objects/operations.ts';
import { headOf, membersOf } from './record.ts';

const headNames = new Set(['objectId', 'createdAt', 'updatedAt']);
const isOwn = (name: string, value: Json): boolean => headNames.has(name) || isObjectHint(name, value);

/**
 * An installation of an export, checked by the rules of those that devices register (shared/domain). Throws a refusal
 * whose sentence names the member and quotes no value.
 */
export function readInstallation(
  record: JsonObject,
  { line, now }: { line: number; now: Date },
): StagedInstallation {
  const members = membersOf(record, isOwn);
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
