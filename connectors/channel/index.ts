import { z } from 'zod';
import type { JsonObject } from '../../shared/domain/json.ts';
import { reason } from '../../shared/domain/reasons.ts';
import type {
  AttemptResult,
  Connector,
  Recipient,
  Sender,
  SenderContext,
  SendRequest,
} from '../contract/connector.ts';
import { reportAll } from '../kit/response-rules.ts';
import { renderChannelContent } from './payload.ts';

/** Empty, because devices of the device channel log in to this service. */
const credentials = z.strictObject({});

/**
 * Connector of the device channel (protocol/channel.md#delivery-on-the-channel). Stores messages,
 * which api processes then deliver.
 */
export const channel: Connector<z.infer<typeof credentials>, JsonObject> = {
  id: 'channel',
  // No collapse id is needed: the message store skips recipients that already have the message.
  can: { passThrough: true, badge: false, collapse: true },
  // One call stores a whole batch. The body of a push has less than 4096 bytes, and the server adds
  // some members.
  limits: { recipientsPerRequest: 1000, bodyBytes: 8192 },
  tokenField: 'installationId',
  credentials,
  render: renderChannelContent,
  // Messages that wait for their devices are deleted (protocol/channel.md).
  canRecall: () => true,
  inspect: () => ({ kind: 'none', expiresAtMs: null, problems: [] }),
  open: (_credentials, context) => new ChannelSender(context),
};

/**
 * Result if the messages could not be stored. A retry is safe, because the store skips messages
 * that it already has.
 */
export const enqueueFailed: Extract<AttemptResult, { kind: 'retry' }> = {
  kind: 'retry',
  status: 0,
  reason: reason('mailboxUnavailable'),
  afterMs: null,
};

/** Result if the process stops before the messages are stored. */
export const stopping: AttemptResult = { kind: 'retry', status: 0, reason: 'stopping', afterMs: 0 };

/** Result of a recall if the device has the message already, or if the message has expired. */
const onDevice: AttemptResult = {
  kind: 'rejected',
  outcome: 'dropped',
  status: 0,
  reason: reason('onDevice'),
};

/** Returns the permanent failure of content that devices of this type cannot take. */
export function unrenderable(error: string): AttemptResult {
  return { kind: 'rejected', outcome: 'failed', status: 400, reason: error };
}

interface Group {
  deviceType: string;
  recipients: Recipient[];
}

/**
 * Groups recipients by content. All Android devices get one content, and all other devices get
 * another.
 */
function groupByContent(recipients: Recipient[]): Group[] {
  const android = recipients.filter(({ deviceType }) => deviceType === 'android');
  const others = recipients.filter(({ deviceType }) => deviceType !== 'android');
  return [
    { deviceType: 'android', recipients: android },
    { deviceType: others[0]?.deviceType ?? '', recipients: others },
  ].filter((group) => group.recipients.length > 0);
}

/**
 * Sends messages by storing them. A stored message counts as `sent`, even if its device is not
 * connected. Recipients with the same content are stored in one call, which stores all or none. So
 * these recipients share one result.
 */
class ChannelSender implements Sender {
  readonly #context: SenderContext;

  constructor(context: SenderContext) {
    this.#context = context;
  }

  async send(request: SendRequest): Promise<void> {
    for (const group of groupByContent(request.recipients)) {
      const attempt = await this.#sendGroup(request, group);
      for (const { index } of group.recipients) request.report(index, attempt);
    }
  }

  /** Deletes messages that wait for their devices. A message on a device stays there. */
  async recall({ pushId, recipients, report, signal }: SendRequest): Promise<void> {
    if (signal.aborted) return reportAll({ recipients, report }, stopping);
    const deleted = await this.#deleteWaiting(pushId, recipients);
    for (const { id, index } of recipients)
      report(index, deleted ? (deleted.has(id) ? { kind: 'sent' } : onDevice) : enqueueFailed);
  }

  async #deleteWaiting(
    pushId: number,
    recipients: Recipient[],
  ): Promise<ReadonlySet<number> | undefined> {
    const { clock, messageStore, onCall } = this.#context;
    const startedAtMs = clock.monotonicMs();
    const deleted = await messageStore.deleteWaiting({ pushId, recipients }).catch(() => undefined);
    const seconds = (clock.monotonicMs() - startedAtMs) / 1000;
    onCall(
      deleted
        ? { status: 200, reason: '', seconds }
        : { status: 0, reason: enqueueFailed.reason, seconds },
    );
    return deleted;
  }

  /** Does nothing, because the worker thread owns the message store. */
  async close(): Promise<void> {}

  async #sendGroup(
    request: SendRequest,
    { deviceType, recipients }: Group,
  ): Promise<AttemptResult> {
    if (request.signal.aborted) return stopping;
    const { pushId, message } = request;
    const rendering = renderChannelContent(message, deviceType);
    return rendering.ok
      ? this.#enqueue({
          pushId,
          content: rendering.payload,
          expiresAtMs: message.expiresAtMs,
          recipients,
        })
      : unrenderable(rendering.error);
  }

  async #enqueue(message: {
    pushId: number;
    content: JsonObject;
    expiresAtMs: number;
    recipients: Recipient[];
  }): Promise<AttemptResult> {
    const { clock, messageStore, onCall } = this.#context;
    const startedAtMs = clock.monotonicMs();
    const secondsSoFar = () => (clock.monotonicMs() - startedAtMs) / 1000;
    try {
      await messageStore.enqueue(message);
    } catch {
      onCall({ status: 0, reason: enqueueFailed.reason, seconds: secondsSoFar() });
      return enqueueFailed;
    }
    onCall({ status: 200, reason: '', seconds: secondsSoFar() });
    return { kind: 'sent' };
  }
}
