import { type ConnectorId, displayName, isConnectorId } from './labels.ts';

/** States of a breaker: closed sends, open does not, half-open sends one probe (protocol/admin-api.md#breakers). */
export const breakerStates = ['closed', 'half-open', 'open'] as const;

export type BreakerState = (typeof breakerStates)[number];

/** State that an operator sets, independent of the gateway. */
export type OverrideState = 'open' | 'closed';

/** Key of a breaker: one per profile of an app. */
export interface BreakerKey {
  connector: ConnectorId;
  appId: string;
  profile: string;
}

/** Failure of a gateway: a connection code, or a status with its reason; holds no address and no token. */
export interface GatewayFailure {
  reason: string;
  at: Date;
}

/** Returns the failure of a gateway as text: `APNs does not answer: ENOTFOUND`, `FCM takes nothing: 503 UNAVAILABLE`. */
export function gatewayFailureText(connector: string, reason: string): string {
  const name = displayName(connector);
  return /^\d/.test(reason) ? `${name} takes nothing: ${reason}` : `${name} does not answer: ${reason}`;
}

/** Breaker in a reply of the admin API (protocol/admin-api.md#breakers). */
export interface BreakerView extends BreakerKey {
  id: string;
  state: BreakerState;
  forced: OverrideState | null;
  since: Date;
  /** When a dispatcher probes the gateway next; null unless its breaker is open by itself. */
  nextProbeAt: Date | null;
  /** Null after the gateway has responded again. */
  lastFailure: GatewayFailure | null;
}

/** Returns the public id `<connector>:<appId>:<profile>`, which exists before the breaker ever opens. */
export function breakerIdOf({ connector, appId, profile }: BreakerKey): string {
  return `${connector}:${appId}:${profile}`;
}

/** Parses a public id; undefined if it is malformed. */
export function parseBreakerId(id: string): BreakerKey | undefined {
  const [connector = '', appId = '', profile = '', ...rest] = id.split(':');
  if (!isConnectorId(connector) || appId === '' || profile === '' || rest.length > 0) return undefined;
  return { connector, appId, profile };
}
