import { inspectCredentials } from '../../../../connectors/registry.ts';
import type { AppOptions } from '../../../../shared/domain/apps/app.ts';
import type { ConnectorId } from '../../../../shared/domain/labels.ts';
import { reason } from '../../../../shared/domain/reasons.ts';

/** Connectors that serve devices whatever `hybridPush` is (protocol/push.md#hybrid-push). */
const withoutHybrid: ReadonlySet<ConnectorId> = new Set(['apns', 'channel']);

/**
 * Tells whether the credentials of a connector do nothing, since its devices get pushes by the own
 * channel.
 */
export const isHybridOff = (
  connector: ConnectorId,
  { hybridPush }: Pick<AppOptions, 'hybridPush'>,
): boolean => !hybridPush && !withoutHybrid.has(connector);

/**
 * Inspects the credentials of a profile, and whether the options of its app let any device use
 * them.
 */
export function inspectProfile(
  { connector, credentials }: { connector: ConnectorId; credentials: unknown },
  options: Pick<AppOptions, 'hybridPush'>,
  nowMs: number,
) {
  const found = inspectCredentials(connector, credentials, nowMs);
  if (!isHybridOff(connector, options)) return found;
  return { ...found, problems: [...found.problems, reason('hybridOff')] };
}
