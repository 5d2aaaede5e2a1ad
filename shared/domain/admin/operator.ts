import { dayMs, hourMs } from '../../clock.ts';

/**
 * A session ends after this time without a call, and after this time in any case
 * (protocol/admin-api.md#sessions).
 */
export const sessionIdleMs = 12 * hourMs;
export const sessionLifeMs = 7 * dayMs;

/**
 * Roles of people and machines that use the admin API, each with the permissions of those before it
 * (protocol/admin-api.md#roles).
 */
export const operatorRoles = ['viewer', 'sender', 'operator', 'owner'] as const;
export type OperatorRole = (typeof operatorRoles)[number];

/** Caller of the admin API. */
export interface Operator {
  /** Name for people: that of the token. */
  name: string;
  role: OperatorRole;
  /** Apps that the caller may see and change; null for all. */
  apps: readonly string[] | null;
  /** Token of the caller; null for CARILLON_ADMIN_TOKEN. */
  tokenId: number | null;
  /** Session of the caller; null for a token in the header. */
  session: { id: number; expiresAt: Date } | null;
}

/** Tells whether a role has the permissions of another. */
export const hasRole = (role: OperatorRole, needed: OperatorRole): boolean =>
  operatorRoles.indexOf(role) >= operatorRoles.indexOf(needed);

/** Tells whether an operator may see and change an app. */
export const mayUseApp = ({ apps }: Pick<Operator, 'apps'>, appId: string): boolean =>
  apps === null || apps.includes(appId);
