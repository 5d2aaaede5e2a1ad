import type { Clock } from '../shared/clock.ts';
import type { Vault } from '../shared/crypto.ts';
import { openSmsWebhook } from './sms/index.ts';
import { openSmtp } from './smtp/index.ts';
import type { MailMessage, SmsMessage, Supplier } from './supplier.ts';

/** The suppliers that are set; where one is absent, messages stay in the outbox and go nowhere (protocol/operation.md#environment). */
export interface Suppliers {
  mail: Supplier<MailMessage> | undefined;
  sms: Supplier<SmsMessage> | undefined;
}

export interface SupplierSettings {
  smtpUrl?: string | undefined;
  smsWebhookUrl?: string | undefined;
  publicUrl: string;
}

/** Keys of the webhook's signatures, one per key of CARILLON_SECRET, the newest first (connectors/sms/README.md). */
export const webhookKeys = (vault: Vault): string[] => vault.derivedBy('sms webhook');

/** Opens what the environment names; connects with the first message. */
export function openSuppliers(
  { smtpUrl, smsWebhookUrl, publicUrl }: SupplierSettings,
  { vault, clock }: { vault: Vault; clock: Clock },
): Suppliers {
  const host = new URL(publicUrl).hostname;
  return {
    mail: smtpUrl === undefined ? undefined : openSmtp({ url: smtpUrl, host }),
    sms:
      smsWebhookUrl === undefined
        ? undefined
        : openSmsWebhook({ url: smsWebhookUrl, keys: webhookKeys(vault), clock }),
  };
}
