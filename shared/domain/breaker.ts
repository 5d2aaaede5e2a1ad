import { type ConnectorId, displayName, isConnectorId } from './labels.ts';

/** Closed lets through, open does not, half-open lets one probe through (protocol/admin-api.md#breakers). */
export const breakerStates = ['closed', 'half-open', 'open'] as const;

export type BreakerState = (typeof breakerStates)[number];

/** What an operator made of a breaker, whatever the gateway does. */
export type OverrideState = 'open' | 'closed';

/** There is one breaker per profile of an app. */
export interface BreakerKey {
  connector: ConnectorId;
  appId: string;
  profile: string;
}

/** Why a gateway could not be asked: a code of the connection or a status with its reason; no address, no token. */
export interface GatewayFailure {
  reason: string;
  at: Date;
}

/** What is wrong with a gateway, for people: `APNs does not answer: ENOTFOUND`, `FCM takes nothing: 503 UNAVAILABLE`. */
export function gatewayFailureText(connector: string, reason: string): string {
  const name = displayName(connector);
  return /^\d/.test(reason) ? `${name} takes nothing: ${reason}` : `${name} does not answer: ${reason}`;
}

/** A breaker as the admin API shows it (protocol/admin-api.md#breakers). */
export interface BreakerView extends BreakerKey {
  id: string;
  state: BreakerState;
  forced: OverrideState | null;
  since: Date;
  /** Null once the gateway has answered again. */
  lastFailure: GatewayFailure | null;
}

/** The public id: `<connector>:<appId>:<profile>`, so that a breaker can be named before it ever opened. */
export function breakerIdOf({ connector, appId, profile }: BreakerKey): string {
  return `${connector}:${appId}:${profile}`;
}

/** The breaker that an id names; undefined when it cannot be one. */
export function parseBreakerId(id: string): BreakerKey | undefined {
  const [connector = '', appId = '', profile = '', ...rest] = id.split(':');
  if (!isConnectorId(connector) || appId === '' || profile === '' || rest.length > 0) return undefined;
  return { connector, appId, profile };
}
