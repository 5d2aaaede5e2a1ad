import type {
  AttemptResult,
  ConnectorLimits,
  Recipient,
  Sender,
  SendRequest,
  TextGroup,
} from '../../connectors/contract/connector.ts';
import type { Database } from '../../shared/db/pool.ts';
import { type FieldValues, readFieldValues } from '../../shared/db/tables/field-values.ts';
import { filled, type Values, type Variables } from '../../shared/domain/pushes/variables.ts';
import { reason } from '../../shared/domain/reasons.ts';
import type { OpenBatch } from './recipients.ts';
import type { Lease } from './sender-cache.ts';

/**
 * Reason of a recipient whose values make the message too large for its gateway. It contains no
 * size, because the size would reveal something about the values.
 */
export const tooLargeWithValues = reason('tooLargeWithValues');

/**
 * Concurrent requests to a gateway that takes many recipients per request. Equals the connections
 * of its client.
 */
const concurrency = 16;

/**
 * Sends each recipient of a push with variables its own text. Recipients with equal values share
 * requests. If the connector supports it, it gets all texts in one pass (`sendTexts`). Otherwise
 * each text is sent as a separate message.
 */
export class PersonalSender implements Sender {
  readonly #sender: Sender;
  readonly #variables: Variables;
  readonly #values: ReadonlyMap<number, FieldValues>;
  readonly #concurrency: number;

  constructor(
    sender: Sender,
    { recipientsPerRequest }: ConnectorLimits,
    texts: { variables: Variables; values: ReadonlyMap<number, FieldValues> },
  ) {
    this.#sender = sender;
    this.#variables = texts.variables;
    this.#values = texts.values;
    // A connector with one recipient per request limits its concurrency itself.
    this.#concurrency = recipientsPerRequest === 1 ? Number.POSITIVE_INFINITY : concurrency;
  }

  async send(request: SendRequest): Promise<void> {
    const groups = this.#groupsOf(request.recipients);
    let ending: AttemptResult | undefined;
    const report: SendRequest['report'] = (index, attempt) => {
      if (attempt.kind === 'profile_error') ending ??= attempt;
      request.report(index, withoutSize(attempt));
    };
    const dataOf = (values: Values) => filled(request.message.data, values);
    if (this.#sender.sendTexts) {
      const names = Object.keys(this.#variables);
      return this.#sender.sendTexts({ ...request, report }, { dataOf, names, groups });
    }
    const remaining = groups.values();
    const work = async () => {
      for (const { recipients, values } of remaining)
        if (ending) for (const { index } of recipients) request.report(index, ending);
        else {
          const message = { ...request.message, data: dataOf(values) };
          await this.#sender.send({ ...request, message, recipients, report });
        }
    };
    await Promise.all(Array.from({ length: Math.min(this.#concurrency, groups.length) }, work));
  }

  async warmUp(message: Parameters<NonNullable<Sender['warmUp']>>[0]): Promise<void> {
    await this.#sender.warmUp?.(message);
  }

  /** The cache owns the sender and closes it. */
  async close(): Promise<void> {}

  /**
   * Groups recipients by their values. Recipients with the same token get one text, so that the
   * device gets the message once.
   */
  #groupsOf(recipients: Recipient[]): TextGroup[] {
    const groups = new Map<string, TextGroup>();
    const byToken = new Map<string, TextGroup>();
    const variables = Object.entries(this.#variables);
    for (const recipient of recipients) {
      const twins = byToken.get(recipient.deviceToken);
      if (twins) {
        twins.recipients.push(recipient);
        continue;
      }
      const found = this.#values.get(recipient.id);
      const values = variables.map(([name, one], i): [string, string] => [
        name,
        found?.[i] ?? one.default,
      ]);
      const key = JSON.stringify(values);
      const group = groups.get(key) ?? { values: new Map(values), recipients: [] };
      group.recipients.push(recipient);
      groups.set(key, group);
      byToken.set(recipient.deviceToken, group);
    }
    return [...groups.values()];
  }
}

/** Reads the values of the open recipients of a batch, and returns a sender that inserts them. */
export async function personalSender(
  db: Database,
  { sender, connector }: Pick<Lease, 'sender' | 'connector'>,
  { batch: { appId, recipients }, tally }: OpenBatch,
  variables: Variables,
): Promise<Sender> {
  const ids = recipients.filter((_, index) => tally.isOpen(index));
  const values = await readFieldValues(db, { appId, ids }, variables);
  return new PersonalSender(sender, connector.limits, { variables, values });
}

/**
 * Removes the size from the reason of an attempt. Reasons are counted, so they must not depend on
 * values.
 */
const withoutSize = (attempt: AttemptResult): AttemptResult =>
  attempt.kind === 'rejected' && attempt.status === 0 && /\b\d+ bytes\b/.test(attempt.reason)
    ? { ...attempt, reason: tooLargeWithValues }
    : attempt;
