/**
 * The contract of a supplier: how mail and SMS leave (develop/architecture.md#connectors). Like a gateway's connector it takes one
 * message, tries once, gives back what became of it as data, and knows no queue and no database.
 */

interface Envelope {
  /** The same at every try of this message, so that a supplier can hide a repeat. */
  id: string;
  appId: string;
  /** What it is for, such as `general` or `resetPassword`. */
  type: string;
  to: string;
  text: string;
}

export interface MailMessage extends Envelope {
  fromName: string;
  subject: string;
  html?: string | undefined;
}

export interface SmsMessage extends Envelope {
  /** A call that reads out the code, in place of a text. */
  isVoice: boolean;
  code?: string | undefined;
  sign: string;
  template?: string | undefined;
  variables: Record<string, string>;
  expiresAtMs: number;
}

/** What became of one try. `reason` is one of a bounded set: it is stored and counted, and names no recipient. */
export type ProviderResult =
  | { kind: 'sent' }
  /** Refused for good: the same message would be refused again. */
  | { kind: 'refused'; reason: string }
  /** Not taken, or no answer: worth another try after `afterMs` (null: the dispatcher's back-off). */
  | { kind: 'retry'; reason: string; afterMs: number | null };

export interface Provider<M> {
  /** Never rejects for an answer; resolves within its deadline. */
  send(message: M): Promise<ProviderResult>;
  close(): Promise<void>;
}
