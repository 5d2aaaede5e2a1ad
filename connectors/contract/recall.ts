/**
 * Decides what a recall does to a message of an earlier push (protocol/admin-api.md#recall), for the
 * dispatcher and for dry runs.
 */
import type { PushOrder } from '../../shared/domain/pushes/push.ts';
import {
  type Connector,
  type MessageSource,
  type PushMessage,
  recalledMessage,
  toPushMessage,
} from './connector.ts';

/** What a recall does to the message of an earlier push on a device. */
export type RecallAction =
  /** The gateway recalls it. */
  | { kind: 'recall' }
  /** The message, which carries the same ids, replaces it. */
  | { kind: 'replace'; message: PushMessage }
  /** The gateway can neither recall nor replace it. */
  | { kind: 'none' };

/** Messages of a push that recalls an earlier push. */
export interface RecallMessages {
  /** The message to recall. */
  earlier: PushMessage;
  /** The message that replaces it; null without a replacement. */
  replacement: PushMessage | null;
}

/** Returns the messages of a push that recalls another push; undefined for other pushes. */
export function recallMessages(push: MessageSource): RecallMessages | undefined {
  const { recall }: PushOrder = push.pushOrder;
  const earlier = recalledMessage(push.pushOrder);
  if (!recall || !earlier) return undefined;
  return { earlier, replacement: recall.hasReplacement ? toPushMessage(push) : null };
}

type RecallingConnector = Pick<Connector, 'canRecall' | 'identityOf'>;

/**
 * Decides how a connector recalls a message on devices of a type. A true recall goes first, because
 * it also works if the replacement is not shown. A replacement must carry the same ids.
 */
export function recallActionOf(
  { canRecall, identityOf }: RecallingConnector,
  { earlier, replacement }: RecallMessages,
  deviceType: string,
): RecallAction {
  if (canRecall?.(earlier, deviceType)) return { kind: 'recall' };
  const identity = replacement && identityOf ? identityOf(earlier, deviceType) : null;
  if (!replacement || identity === null) return { kind: 'none' };
  const message = { ...replacement, replaces: identity };
  const carried = identityOf?.(message, deviceType) ?? null;
  const isSame = JSON.stringify(carried) === JSON.stringify(identity);
  return isSame ? { kind: 'replace', message } : { kind: 'none' };
}
