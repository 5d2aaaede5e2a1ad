import { type ConnectorId, displayName, isConnectorId } from './labels.ts';
import { readReason, reasonText } from './reasons.ts';

/**
 * States of a circuit breaker (protocol/admin-api.md#breakers). `closed` sends, `open` sends
 * nothing, and `half-open` sends one probe.
 */
export const breakerStates = ['closed', 'half-open', 'open'] as const;

export type BreakerState = (typeof breakerStates)[number];

/** State that an operator sets. It does not depend on the gateway. */
export type OverrideState = 'open' | 'closed';

/** Key of a circuit breaker. Each profile of an app has one. */
export interface BreakerKey {
  connector: ConnectorId;
  appId: string;
  profile: string;
}

/** Failure of a gateway. */
export interface GatewayFailure {
  /**
   * Stored reason: a connection error code, or a status with its reason. Contains no address and no
   * token.
   */
  reason: string;
  at: Date;
}

/**
 * True if the gateway responded with a status, which the stored reason of the failure then
 * contains.
 */
export const hasAnswered = (reason: string): boolean =>
  readReason(reason).params.status !== undefined;

/**
 * Returns the failure of a gateway as text: `APNs does not answer: ENOTFOUND`, or `FCM takes
 * nothing: 503 UNAVAILABLE`.
 */
export function gatewayFailureText(connector: string, reason: string): string {
  return `${displayName(connector)} ${hasAnswered(reason) ? 'takes nothing' : 'does not answer'}: ${reasonText(reason)}`;
}

/** Circuit breaker in a reply of the admin API (protocol/admin-api.md#breakers). */
export interface BreakerView extends BreakerKey {
  id: string;
  state: BreakerState;
  forced: OverrideState | null;
  since: Date;
  /**
   * When a dispatcher probes the gateway next. Null if the breaker is not open or an operator
   * opened it.
   */
  nextProbeAt: Date | null;
  /** Last failure. Null if the gateway has responded since. */
  lastFailure: GatewayFailure | null;
}

/**
 * Returns the public id `<connector>:<appId>:<profile>`. It is known even if the breaker has never
 * opened.
 */
export function breakerIdOf({ connector, appId, profile }: BreakerKey): string {
  return `${connector}:${appId}:${profile}`;
}

/** Parses a public id. Returns undefined if it is malformed. */
export function parseBreakerId(id: string): BreakerKey | undefined {
  const [connector = '', appId = '', profile = '', ...rest] = id.split(':');
  if (!isConnectorId(connector) || appId === '' || profile === '' || rest.length > 0)
    return undefined;
  return { connector, appId, profile };
}
