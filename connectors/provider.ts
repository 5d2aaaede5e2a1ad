/**
 * Contract of a provider of mail or SMS (develop/architecture.md#connectors). Like a gateway's
 * connector, a provider takes one message, tries once, returns the result as data, and uses neither
 * queue nor database.
 */

interface Envelope {
  /** The same at every try of this message, so that a provider can drop duplicates. */
  id: string;
  appId: string;
  /** Purpose, such as `general` or `resetPassword`. */
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
  /** True: a call that reads the code aloud, in place of a text. */
  isVoice: boolean;
  code?: string | undefined;
  sign: string;
  template?: string | undefined;
  variables: Record<string, string>;
  expiresAtMs: number;
}

/**
 * Result of one try. `reason` is a stored reason from a bounded set, and contains no personal data.
 */
export type ProviderResult =
  | { kind: 'sent' }
  /** Refused permanently. */
  | { kind: 'refused'; reason: string }
  /**
   * Not accepted, or no response: retry after the dispatcher's back-off, and not before `afterMs`.
   */
  | { kind: 'retry'; reason: string; afterMs: number | null };

/** Client of a provider. */
export interface Provider<M> {
  /** Host and port of its server, for logs. */
  readonly host: string;
  /** Sends a message. Resolves for any response, within its deadline. */
  send(message: M): Promise<ProviderResult>;
  close(): Promise<void>;
}
