import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { type Acl, mayUser } from '../../../shared/domain/objects/acl.ts';
import { openedAuthData, type Sealer } from '../../../shared/domain/users/auth-data.ts';
import type { UserRules } from '../../../shared/domain/users/changes.ts';
import type { User, UserView } from '../../../shared/domain/users/user.ts';
import { type Viewer, viewerOf } from '../../../shared/query/viewer.ts';
import type { SessionOwner } from './sessions/sessions.ts';

/** Caller of the users API: its key, and its user if it has a session. */
export interface UserCaller {
  app: App;
  isMaster: boolean;
  session: SessionOwner | undefined;
}

/** Caller of a sign-up, with its network address. */
export type SignUpCaller = Pick<UserCaller, 'app' | 'isMaster'> & {
  hasHookKey?: boolean | undefined;
  remoteAddress: string;
};

/**
 * Returns the network address that a sign-up counts against. Returns undefined for servers of the
 * app, because they act for many users.
 */
export const signUpIpAddress = ({
  isMaster,
  hasHookKey,
  remoteAddress,
}: SignUpCaller): string | undefined => (isMaster || hasHookKey ? undefined : remoteAddress);

/** Returns the rules for changes that the caller makes to a user. */
export const rulesOf = ({
  app: { options },
  isMaster,
}: Pick<UserCaller, 'app' | 'isMaster'>): UserRules => ({
  emailVerification: options.emailVerification,
  isMaster,
  maxBytes: isMaster ? undefined : options.userBytes,
});

/** Returns whether a text has the form of a user's or role's id. */
export const isObjectId = (text: string): boolean => /^[A-Za-z0-9_-]{1,64}$/.test(text);

/**
 * Throws error 206 if the caller is not the user and has no master key
 * (protocol/users.md#changing-a-user).
 */
export function requireSelf({ isMaster, session }: UserCaller, objectId: string): void {
  if (!isMaster && session?.objectId !== objectId) throw refuse('sessionNeeded');
}

/**
 * Throws error 206 if the caller's session has ended since the call began. `user` must be locked.
 */
export function requireCurrentSession({ isMaster, session }: UserCaller, user: User): void {
  if (!isMaster && !session?.hash.equals(user.session.hash)) throw refuse('sessionNeeded');
}

/** Object with an ACL: a user or a role. */
interface AclObject {
  acl: Acl | null;
}

/** Throws error 403 if the object's ACL denies the caller write access. */
export function requireWrite({ isMaster, session }: UserCaller, { acl }: AclObject): void {
  if (!isMaster && !mayUser(acl, 'write', session)) throw refuse('forbiddenWriteByAcl');
}

/** Throws error 403 if the object's ACL denies the caller read access. */
export function requireRead({ isMaster, session }: UserCaller, { acl }: AclObject): void {
  if (!isMaster && !mayUser(acl, 'read', session)) throw refuse('forbiddenReadByAcl');
}

/**
 * Returns the function that decrypts tokens of third-party accounts. Returns undefined for callers
 * without the master key (accounts/README.md).
 */
export function tokenOpenerFor(
  { app: { appId }, isMaster }: Pick<UserCaller, 'app' | 'isMaster'>,
  sealer: Sealer,
): UserView['open'] {
  return isMaster ? (authData) => openedAuthData(sealer, appId, authData) : undefined;
}

/** Returns the rights with which the caller's queries run. */
export const viewerFor = ({ app, isMaster, session }: UserCaller): Viewer =>
  viewerOf(app, { isMaster, user: session });
