import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { type Acl, mayUser } from '../../../shared/domain/objects/acl.ts';
import { openedAuthData, type Sealer } from '../../../shared/domain/users/auth-tokens.ts';
import type { UserRules } from '../../../shared/domain/users/changes.ts';
import type { User, UserView } from '../../../shared/domain/users/user.ts';
import { type Reader, readerOf } from '../../../shared/query/viewer.ts';
import type { SessionOwner } from './sessions/sessions.ts';

/** Who asks: with which key, and as which user. */
export interface UserCaller {
  app: App;
  isMaster: boolean;
  session: SessionOwner | undefined;
}

/** Who signs up, and from where. */
export type SignUpCaller = Pick<UserCaller, 'app' | 'isMaster'> & {
  hasHookKey?: boolean | undefined;
  remoteAddress: string;
};

/** The address that a sign-up counts for; undefined for servers of the app, which sign up whom they serve. */
export const signUpIpAddress = ({ isMaster, hasHookKey, remoteAddress }: SignUpCaller): string | undefined =>
  isMaster || hasHookKey ? undefined : remoteAddress;

/** What this caller may write of a user. */
export const rulesOf = ({ app: { options }, isMaster }: Pick<UserCaller, 'app' | 'isMaster'>): UserRules => ({
  emailVerification: options.emailVerification,
  isMaster,
  maxBytes: isMaster ? undefined : options.userBytes,
});

/** Ids of users and roles as they may stand in a path. */
export const isObjectId = (text: string): boolean => /^[A-Za-z0-9_-]{1,64}$/.test(text);

/** protocol/users.md#changing-a-user: only the user itself, with its session; the master key bypasses it. Throws 206. */
export function requireSelf({ isMaster, session }: UserCaller, objectId: string): void {
  if (!isMaster && session?.objectId !== objectId) throw refuse('sessionNeeded');
}

/** Throws 206 when the session of the call has ended since it was admitted; for a user that is locked. */
export function requireCurrentSession({ isMaster, session }: UserCaller, user: User): void {
  if (!isMaster && !session?.hash.equals(user.session.hash)) throw refuse('sessionNeeded');
}

/** An object that may have an ACL: a user or a role. */
interface AclObject {
  acl: Acl | null;
}

/** Throws 403 when the object's ACL does not let the caller change it. */
export function requireWrite({ isMaster, session }: UserCaller, { acl }: AclObject): void {
  if (!isMaster && !mayUser(acl, 'write', session)) throw refuse('forbiddenWriteByAcl');
}

/** Throws 403 when the object's ACL does not let the caller see it. */
export function requireRead({ isMaster, session }: UserCaller, { acl }: AclObject): void {
  if (!isMaster && !mayUser(acl, 'read', session)) throw refuse('forbiddenReadByAcl');
}

/** How documents of users get the tokens of their third-party accounts: for the master key only (accounts/README.md). */
export function tokenOpenerFor(
  { app: { appId }, isMaster }: Pick<UserCaller, 'app' | 'isMaster'>,
  sealer: Sealer,
): UserView['open'] {
  return isMaster ? (authData) => openedAuthData(sealer, appId, authData) : undefined;
}

/** For whom queries of this caller are answered. */
export const readerFor = ({ app, isMaster, session }: UserCaller): Reader =>
  readerOf(app, { isMaster, user: session });
