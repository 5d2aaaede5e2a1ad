/**
 * Interface of a provider of mail or SMS (develop/architecture.md#connectors). Like a push
 * connector, a provider sends one message in one attempt and returns the result as data. It uses
 * neither queue nor database.
 */

interface Envelope {
  /** Stays the same in all attempts, so that a provider can drop duplicates. */
  id: string;
  appId: string;
  /** Purpose of the message, such as `general` or `resetPassword`. */
  type: string;
  to: string;
  text: string;
}

/** Mail to send. */
export interface MailMessage extends Envelope {
  fromName: string;
  subject: string;
  html?: string | undefined;
}

/** SMS or voice call to send. */
export interface SmsMessage extends Envelope {
  /**
   * If true, the provider makes a call that reads the code aloud. Otherwise it sends a text
   * message.
   */
  isVoice: boolean;
  code?: string | undefined;
  sign: string;
  template?: string | undefined;
  variables: Record<string, string>;
  /** Template that the message has at the provider, for providers with templates of their own. */
  providerTemplate?: ProviderTemplate | undefined;
  /** Name of the template whose `providers` count for the message. */
  templateName: string;
  expiresAtMs: number;
}

/** Templates of providers, with the parameters that each gets. */
export interface ProviderTemplate {
  /** Name of the provider's parameter by our variable. */
  aliyun?: { code: string; params: Record<string, string> };
  /** Our variables in the order of the provider's parameters. */
  tencent?: { id: string; params: string[] };
}

/** Result of one attempt. `reason` is a stored reason from a bounded set, without personal data. */
export type ProviderResult =
  | { kind: 'sent'; providerId?: string }
  /**
   * The provider refused the message permanently. `isSetting` is true if a setting of the operator
   * is the cause, so that all messages fail until it is corrected.
   */
  | { kind: 'refused'; reason: string; isSetting?: true }
  /**
   * The message was not accepted, or there was no response. The dispatcher retries after its
   * backoff, but not before `afterMs`.
   */
  | { kind: 'retry'; reason: string; afterMs: number | null };

/** Client of a provider. */
export interface Provider<M> {
  /** Host and port of the provider's server, for logs. */
  readonly host: string;
  /** Member of `providers` of a template that a message needs. Absent for providers of texts. */
  readonly template?: 'aliyun' | 'tencent';
  /**
   * Sends a message. Resolves for each response, and at the latest when the provider's timeout
   * ends.
   */
  send(message: M): Promise<ProviderResult>;
  close(): Promise<void>;
}
