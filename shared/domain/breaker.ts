import { type ConnectorId, displayName, isConnectorId } from './labels.ts';
import { readReason, reasonText } from './reasons.ts';

/**
 * States of a breaker: closed sends, open does not, half-open sends one probe
 * (protocol/admin-api.md#breakers).
 */
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

/** Failure of a gateway. */
export interface GatewayFailure {
  /**
   * Stored reason: a connection code, or a status with its reason; holds no address and no token.
   */
  reason: string;
  at: Date;
}

/**
 * Returns whether the gateway answered with a status: then the stored reason of its failure has
 * one.
 */
export const hasAnswered = (reason: string): boolean =>
  readReason(reason).params.status !== undefined;

/**
 * Returns the failure of a gateway as text: `APNs does not answer: ENOTFOUND`, `FCM takes nothing:
 * 503 UNAVAILABLE`.
 */
export function gatewayFailureText(connector: string, reason: string): string {
  return `${displayName(connector)} ${hasAnswered(reason) ? 'takes nothing' : 'does not answer'}: ${reasonText(reason)}`;
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

/**
 * Returns the public id `<connector>:<appId>:<profile>`, which exists before the breaker ever
 * opens.
 */
export function breakerIdOf({ connector, appId, profile }: BreakerKey): string {
  return `${connector}:${appId}:${profile}`;
}

/** Parses a public id; undefined if it is malformed. */
export function parseBreakerId(id: string): BreakerKey | undefined {
  const [connector = '', appId = '', profile = '', ...rest] = id.split(':');
  if (!isConnectorId(connector) || appId === '' || profile === '' || rest.length > 0)
    return undefined;
  return { connector, appId, profile };
}
