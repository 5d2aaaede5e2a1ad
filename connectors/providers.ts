import type { Clock } from '../shared/clock.ts';
import type { Vault } from '../shared/crypto.ts';
import type { SmsProviderUrl } from '../shared/domain/messages/sms-provider.ts';
import type { MailMessage, Provider, SmsMessage } from './provider.ts';
import { openSms } from './sms/index.ts';
import { openSmtp } from './smtp/index.ts';

/**
 * Configured providers. Messages of a kind without a provider stay in the outbox
 * (protocol/operation.md#environment).
 */
export interface Providers {
  mail: Provider<MailMessage> | undefined;
  sms: Provider<SmsMessage> | undefined;
}

/** Settings of the providers, from the environment. */
export interface ProviderSettings {
  smtpUrl?: string | undefined;
  sms?: SmsProviderUrl | undefined;
  publicUrl: string;
}

/**
 * Returns the signing keys of the webhook, newest first: one key per key of CARILLON_SECRET
 * (operate/mail-and-sms.md#check-a-request).
 */
export const webhookKeys = (vault: Vault): string[] => vault.derivedBy('sms webhook');

/** Opens the configured providers. They connect when the first message is sent. */
export function openProviders(
  { smtpUrl, sms, publicUrl }: ProviderSettings,
  { vault, clock }: { vault: Vault; clock: Clock },
): Providers {
  const host = new URL(publicUrl).hostname;
  return {
    mail: smtpUrl === undefined ? undefined : openSmtp({ url: smtpUrl, host }),
    sms:
      sms === undefined ? undefined : openSms(sms, { keys: webhookKeys(vault), publicUrl, clock }),
  };
}
