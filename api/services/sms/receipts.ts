import { equalInConstantTime, type Vault } from '../../../shared/crypto.ts';
import { recordDelivery } from '../../../shared/db/tables/outbox.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import {
  type MessageKey,
  type ReceiptProvider,
  readReceipts,
  readTwilioReceipt,
  receiptProviders,
  receiptReplies,
  type SmsReceipt,
  twilioSignature,
  twilioUrl,
} from '../../../shared/domain/messages/sms-receipts.ts';
import type { ApiDeps } from '../deps.ts';

const idPattern = /^\d{1,15}$/;

const secretContext = (provider: ReceiptProvider) => `sms receipts ${provider}`;

/**
 * Returns the address that the operator enters in the console of the provider. Its last part is a
 * secret, because Aliyun and Tencent Cloud do not sign receipts.
 */
export const smsReceiptAddress = (
  publicUrl: string,
  vault: Vault,
  provider: ReceiptProvider,
): string => `${publicUrl}/sms-receipts/${provider}/${vault.derive(secretContext(provider))}`;

/** Records delivery receipts of SMS providers (operate/mail-and-sms.md#receipts). */
export class SmsReceiptService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Throws error 404 unless the service sends by Twilio. */
  admitTwilio(): string {
    const { sms } = this.#deps.config;
    if (sms?.provider !== 'twilio') throw refuse('notFound');
    return sms.authToken;
  }

  /**
   * Records the status of a message that Twilio posts as a form. Throws error 401 if the signature
   * is wrong.
   */
  async recordTwilio(
    message: MessageKey,
    { signature, body }: { signature: string | undefined; body: string },
  ): Promise<void> {
    const authToken = this.admitTwilio();
    if (!idPattern.test(message.id)) throw refuse('notFound');
    const form = new URLSearchParams(body);
    const url = twilioUrl(this.#deps.config.publicUrl, message);
    if (!equalInConstantTime(twilioSignature(authToken, url, form), signature ?? ''))
      throw refuse('unauthorized');
    const receipt = readTwilioReceipt(message, form);
    if (receipt) await this.#record([receipt]);
  }

  /** Throws error 404 if the provider or the secret is wrong. The error does not say which. */
  admit(provider: string | undefined, secret: string | undefined): ReceiptProvider {
    const found = receiptProviders.find((one) => one === provider);
    const isRight =
      found !== undefined &&
      this.#deps.vault
        .derivedBy(secretContext(found))
        .map((derived) => equalInConstantTime(derived, secret ?? ''))
        .includes(true);
    if (!isRight) throw refuse('notFound');
    return found;
  }

  /**
   * Records the receipts of a call and returns the reply that the provider expects. Throws error 400
   * if the body is not in the form of the provider.
   */
  async record(provider: ReceiptProvider, body: string) {
    const receipts = readReceipts(provider, parsed(body));
    if (!receipts)
      throw refuse('invalidParameter', 'The body is not a list of receipts of this provider.');
    await this.#record(receipts);
    return receiptReplies[provider];
  }

  async #record(receipts: readonly SmsReceipt[]): Promise<void> {
    const { db, metrics } = this.#deps;
    for (const receipt of receipts)
      if (await recordDelivery(db, receipt))
        metrics.smsReceipts.inc({ outcome: receipt.isDelivered ? 'delivered' : 'undelivered' });
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
