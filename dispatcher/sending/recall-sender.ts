import type {
  AttemptResult,
  Recipient,
  Sender,
  SendRequest,
} from '../../connectors/contract/connector.ts';
import { type RecallMessages, recallActionOf } from '../../connectors/contract/recall.ts';
import { reason } from '../../shared/domain/reasons.ts';
import type { Lease } from './sender-cache.ts';

/** Forms of `sent` in a push that recalls another push. The batch counts them (`sent_by`). */
const recalled: AttemptResult = { kind: 'sent', form: 'recalled' };
const replacedForm = 'replaced';

/**
 * Sends a push that recalls an earlier push (protocol/admin-api.md#recall). Recalls the messages
 * where the gateway can, and sends the replacement to these devices as a new message. Replaces them
 * by their ids elsewhere. Reports other recipients as dropped.
 */
export class RecallSender implements Sender {
  readonly #lease: Pick<Lease, 'sender' | 'connector'>;
  readonly #messages: RecallMessages;
  /** Internal id of the earlier push. */
  readonly #pushId: number;

  constructor(
    lease: Pick<Lease, 'sender' | 'connector'>,
    { messages, pushId }: { messages: RecallMessages; pushId: number },
  ) {
    this.#lease = lease;
    this.#messages = messages;
    this.#pushId = pushId;
  }

  async send(request: SendRequest): Promise<void> {
    const types = Map.groupBy(request.recipients, ({ deviceType }) => deviceType);
    await Promise.all(
      [...types].map(([deviceType, recipients]) =>
        this.#sendType({ ...request, recipients, report: keepingTokens(request) }, deviceType),
      ),
    );
  }

  /** The cache owns the sender and closes it. */
  async close(): Promise<void> {}

  #sendType(request: SendRequest, deviceType: string): Promise<void> | void {
    const { sender, connector } = this.#lease;
    const action = recallActionOf(connector, this.#messages, deviceType);
    if (action.kind === 'recall' && sender.recall) return this.#recall(request);
    if (action.kind === 'replace') {
      // The lifetime of the message is the lifetime of the recall.
      const { expiresAtMs } = request.message;
      return sender.send({ ...request, message: { ...action.message, expiresAtMs } });
    }
    const why = reason('notRecallable', { connector: connector.id });
    for (const { index } of request.recipients)
      request.report(index, { kind: 'rejected', outcome: 'dropped', status: 0, reason: why });
  }

  /** Recalls the message, then sends the replacement to the devices where this succeeded. */
  async #recall(request: SendRequest): Promise<void> {
    const { sender } = this.#lease;
    const { earlier, replacement } = this.#messages;
    const { message, report } = request;
    const { expiresAtMs } = message;
    const done = new Set<number>();
    await sender.recall?.({
      ...request,
      pushId: this.#pushId,
      message: { ...earlier, expiresAtMs },
      report: (index, attempt) => {
        if (attempt.kind !== 'sent') report(index, attempt);
        else if (replacement) done.add(index);
        else report(index, recalled);
      },
    });
    const recipients: Recipient[] = request.recipients.filter(({ index }) => done.has(index));
    if (!replacement || recipients.length === 0) return;
    await sender.send({
      ...request,
      recipients,
      // The gateway gets both requests again, and a recall has no second effect. If the replacement
      // is refused, the message is recalled nevertheless.
      report: (index, attempt) => report(index, isRepeated(attempt) ? attempt : recalled),
    });
  }
}

/** True if a message is certainly sent again after this result. */
const isRepeated = (attempt: AttemptResult): boolean =>
  attempt.kind === 'retry' || (attempt.kind === 'unknown' && attempt.isRepeatHidden);

/**
 * Returns the report of a request. Marks replaced messages, and turns an invalid token into a
 * failure: an answer to a recall deletes no device.
 */
const keepingTokens =
  ({ report }: SendRequest): SendRequest['report'] =>
  (index, attempt) => {
    if (attempt.kind === 'sent' && attempt.form !== 'recalled')
      report(index, { ...attempt, form: replacedForm });
    else if (attempt.kind === 'invalid_token') {
      const { status, reason: why } = attempt;
      report(index, { kind: 'rejected', outcome: 'failed', status, reason: why });
    } else report(index, attempt);
  };
