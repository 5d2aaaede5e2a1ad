import { dayMs, hourMs } from '../../clock.ts';

/**
 * A session ends after `sessionIdleMs` without a call, and at the latest after `sessionLifeMs`
 * (protocol/admin-api.md#sessions).
 */
export const sessionIdleMs = 12 * hourMs;
export const sessionLifeMs = 7 * dayMs;
/** A session by OpenID Connect ends this long after the login, so that changed rights count. */
export const oidcSessionMs = 12 * hourMs;

/**
 * Roles of people and machines that use the admin API. Each role includes the permissions of the
 * roles before it (protocol/admin-api.md#roles).
 */
export const operatorRoles = ['viewer', 'sender', 'operator', 'owner'] as const;
export type OperatorRole = (typeof operatorRoles)[number];

/** Caller of the admin API. */
export interface Operator {
  /** Name for people: of the token, or of the person at the provider of OpenID Connect. */
  name: string;
  role: OperatorRole;
  /** Apps that the caller may see and change; null means all apps. */
  apps: readonly string[] | null;
  /** Id of the caller's token or of the person; null for CARILLON_ADMIN_TOKEN. */
  tokenId: number | null;
  /** Session of the caller; null if the token was sent in a header. */
  session: { id: number; expiresAt: Date; isOidc: boolean } | null;
}

/** True if a role includes the permissions of another role. */
export const hasRole = (role: OperatorRole, needed: OperatorRole): boolean =>
  operatorRoles.indexOf(role) >= operatorRoles.indexOf(needed);

/** True if an operator may see and change an app. */
export const mayUseApp = ({ apps }: Pick<Operator, 'apps'>, appId: string): boolean =>
  apps === null || apps.includes(appId);
