import { addressesIn } from '../../../../shared/domain/addresses.ts';
import {
  isHiddenMember,
  isShortened,
  isTokenMember,
  shortenTokens,
} from '../../../../shared/domain/admin/masking.ts';
import {
  hasRole,
  type Operator,
  type OperatorRole,
} from '../../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { isJsonObject, type JsonObject } from '../../../../shared/domain/json.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { isRefusedUrl } from '../../../../shared/http/outbound-addresses.ts';
import { type MemberUse, masterViewer, type Viewer } from '../../../../shared/query/viewer.ts';
import type { ApiDeps } from '../../deps.ts';

/**
 * Rights of an admin API caller for a condition, with the personal members that the condition
 * named.
 */
export interface ConditionViewer extends Viewer {
  /**
   * Members that the conditions named and that contain device tokens or personal data. They are
   * audited.
   */
  personal: ReadonlySet<string>;
}

/**
 * Returns the viewer for the conditions of an admin API caller (protocol/admin-api.md#conditions).
 * The number of matching devices reveals something about their members: with many patterns or
 * comparisons, a caller could find out a token. So a caller may name a member only if the caller's
 * role may see it. Otherwise, parsing throws error 403.
 */
export function operatorViewer(operator: Operator, appId: string): ConditionViewer {
  const personal = new Set<string>();
  const checkUses = (uses: readonly MemberUse[]): void => {
    for (const use of uses) {
      requireMayName(operator, use);
      if (isHiddenMember(use.member)) personal.add(use.member);
    }
  };
  return { ...masterViewer(appId), ...classesOf(operator), personal, checkUses };
}

/** The role viewer may not query users and roles. */
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
    // A caller with a whole token learns only that the token exists. A test push to one device
    // needs this.
    const isWholeToken =
      use === 'whole' && !isInner && className === '_Installation' && isTokenMember(member);
    if (isWholeToken && hasRole(role, 'sender')) return;
    throw refuse('forbidden', detail('memberNeedsOperator', { member }));
  }
  // A sender may target devices by members of users that the sender does not see. The sender may
  // not use patterns or comparisons to find out their values.
  if (className === '_User' && use === 'spelling' && !visibleToAll.has(member))
    throw refuse('forbidden', detail('spellingNeedsOperator', { member }));
}

/** Members of users that every role sees. */
const visibleToAll = new Set([
  'objectId',
  'createdAt',
  'updatedAt',
  'emailVerified',
  'mobilePhoneVerified',
]);

/**
 * Returns a device or a condition in the form that a caller may see. Below the role operator,
 * tokens and personal data are shortened.
 */
export const visibleTo = ({ role }: Pick<Operator, 'role'>, document: JsonObject): JsonObject =>
  hasRole(role, 'operator') ? document : shortenTokens(document);

/** Hosts of Google's token endpoint, which every service account file names. */
const googleHost = /^https:\/\/([a-z0-9-]+\.)*(googleapis\.com|google\.com)$/;

/**
 * Checks the URLs in credentials that Carillon would connect to, before they are stored. Throws
 * error 400 if a URL is private and CARILLON_PRIVATE_HOSTS does not list it. Throws error 403 if a
 * caller below the role owner changes a URL, because requests with the credentials would then go to
 * any server.
 */
export async function requireMaySetAddresses(
  { appCache }: Pick<ApiDeps, 'appCache'>,
  { appId, connector, name }: { appId: string; connector: string; name: string },
  { credentials, role }: { credentials: JsonObject; role: OperatorRole },
): Promise<void> {
  const addresses = addressesIn(credentials);
  requirePublicAddresses(addresses);
  if (hasRole(role, 'owner') || addresses.size === 0) return;
  const profiles = await appCache.profiles(appId);
  const stored = profiles.find(
    (one) => one.connector === connector && one.name === name,
  )?.credentials;
  const storedUrls = addressesIn(isJsonObject(stored) ? stored : {});
  for (const [member, url] of addresses)
    if (
      storedUrls.get(member) !== url &&
      !(member.endsWith('token_uri') && googleHost.test(new URL(url).origin))
    )
      throw refuse('forbidden', detail('ownerOption', { option: member }));
}

/** Throws error 400 if a URL is private and CARILLON_PRIVATE_HOSTS does not list it. */
export function requirePublicAddresses(addresses: ReadonlyMap<string, string>): void {
  for (const [member, url] of addresses)
    if (isRefusedUrl(url)) throw refuse('invalidParameter', detail('privateAddress', { member }));
}
