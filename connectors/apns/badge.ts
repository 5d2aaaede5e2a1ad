import { isJsonObject, type Json } from '../../shared/domain/json.ts';
import type { PushMessage } from '../contract/connector.ts';

/**
 * Returns the badge of Apple devices: a number, or the case-sensitive word `Increment`, from the `ios` object,
 * the `aps` layout or the default members, the most specific first (protocol/push.md#badges).
 */
export function badgeOf(message: Pick<PushMessage, 'data'>): 'Increment' | number | null {
  const { ios, aps, badge } = message.data;
  const own = isJsonObject(ios) ? [isJsonObject(ios.aps) ? ios.aps.badge : undefined, ios.badge] : [];
  const candidates: (Json | undefined)[] = [...own, isJsonObject(aps) ? aps.badge : undefined, badge];
  const value = candidates.find((candidate) => candidate !== undefined && candidate !== null);
  return value === 'Increment' || typeof value === 'number' ? value : null;
}
