import {
  isHiddenMember,
  isShortened,
  isTokenMember,
  shortenTokens,
} from '../../../../shared/domain/admin/masking.ts';
import { hasRole, type Operator } from '../../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { type MemberUse, masterViewer, type Viewer } from '../../../../shared/query/viewer.ts';

/** Caller of the admin API as the reader of a condition. */
export interface ConditionAsker extends Viewer {
  /**
   * Members with tokens of devices or data of people that the conditions have named, for the audit.
   */
  personal: ReadonlySet<string>;
}

/**
 * Returns the viewer for every condition that a caller of the admin API sends
 * (protocol/admin-api.md#conditions). The number of devices that meet a condition answers a
 * question about them, so a caller may name a member only if the role sees it: asked often enough,
 * patterns and orders spell a token. Its conditions throw 403 otherwise.
 */
export function askerOf(operator: Operator, appId: string): ConditionAsker {
  const personal = new Set<string>();
  const permit = (uses: readonly MemberUse[]): void => {
    for (const use of uses) {
      requireMayName(operator, use);
      if (isHiddenMember(use.member)) personal.add(use.member);
    }
  };
  return { ...masterViewer(appId), ...classesOf(operator), personal, permit };
}

/** Viewers see no members of users and no roles. */
const classesOf = ({ role }: Operator): Partial<Viewer> =>
  hasRole(role, 'sender') ? {} : { classes: new Set(['_Installation']) };

function requireMayName(
  { role }: Operator,
  { className, member, use, value, isInner }: MemberUse,
): void {
  if (value !== undefined && isHiddenMember(member) && isShortened(value))
    throw refuse('invalidParameter', detail('shortenedValue', { member }));
  if (hasRole(role, 'operator')) return;
  if (isHiddenMember(member)) {
    // Who knows a whole token learns only that it exists, and a test push to one device needs it.
    const isWholeToken =
      use === 'whole' && !isInner && className === '_Installation' && isTokenMember(member);
    if (isWholeToken && hasRole(role, 'sender')) return;
    throw refuse('forbidden', detail('memberNeedsOperator', { member }));
  }
  // A sender may target by members of users that it does not see, but not spell them.
  if (className === '_User' && use === 'spelling' && !shownToAll.has(member))
    throw refuse('forbidden', detail('spellingNeedsOperator', { member }));
}

/** Members of users that every role sees. */
const shownToAll = new Set([
  'objectId',
  'createdAt',
  'updatedAt',
  'emailVerified',
  'mobilePhoneVerified',
]);

/**
 * Returns a device or a condition as a caller may see it: tokens and data of people are shortened
 * below operator.
 */
export const visibleTo = ({ role }: Pick<Operator, 'role'>, document: JsonObject): JsonObject =>
  hasRole(role, 'operator') ? document : shortenTokens(document);
