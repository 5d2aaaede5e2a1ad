import { createRequire } from 'node:module';
import { reasonAs, reasonText } from '../../shared/domain/reasons.ts';
import type { MailMessage, Provider, ProviderResult } from '../provider.ts';

/**
 * Reasons by error code of the library (nodemailer, "Error codes"). All other codes get the reason
 * `error`.
 */
const reasons = new Map([
  ['ECONNECTION', 'connection_lost'],
  ['ESOCKET', 'connection_lost'],
  ['ECONNREFUSED', 'connect_failed'],
  ['EDNS', 'connect_failed'],
  ['ETIMEDOUT', 'timeout'],
  ['ETLS', 'tls_failed'],
  ['EAUTH', 'authentication'],
  ['ENOAUTH', 'authentication'],
  ['EOAUTH2', 'authentication'],
  ['EENVELOPE', 'envelope'],
  ['EMESSAGE', 'message'],
  ['ESTREAM', 'message'],
  ['EPROTOCOL', 'protocol'],
]);

/**
 * Errors that concern only this mail. With a 5xx reply they are permanent (RFC 5321 4.2.1). All
 * other errors are temporary.
 */
const mailErrors = new Set(['EENVELOPE', 'EMESSAGE']);

/** The mail is too large (RFC 1870 6.1). Servers may say so in the reply to the sender. */
const tooLarge = 552;

/** Returns whether the server refuses the sender, which is a setting. */
const isOfSender = (error: unknown): boolean =>
  member(error, 'code') === 'EENVELOPE' &&
  member(error, 'command') === 'MAIL FROM' &&
  member(error, 'responseCode') !== tooLarge;

function member(error: unknown, name: 'code' | 'command' | 'responseCode'): unknown {
  return typeof error === 'object' && error !== null && name in error
    ? Object.getOwnPropertyDescriptor(error, name)?.value
    : undefined;
}

/**
 * Returns the result of a failed mail. Ignores the text of the error, because servers quote the
 * address in it. Bad credentials and a refused sender lead to a retry, because the operator can fix
 * them while the mail waits.
 */
function readFailure(error: unknown): ProviderResult {
  const code = String(member(error, 'code') ?? '');
  const status = member(error, 'responseCode');
  const known = reasons.get(code) ?? 'error';
  const reason =
    typeof status === 'number' && status >= 400 && status < 600
      ? reasonAs(`${known}_${status}`, known, { status })
      : known;
  const isFinal =
    mailErrors.has(code) && !isOfSender(error) && (typeof status !== 'number' || status >= 500);
  return isFinal ? { kind: 'refused', reason } : { kind: 'retry', reason, afterMs: null };
}

/** Options of the SMTP provider. */
interface SmtpOptions {
  /**
   * `smtp://` (STARTTLS if the server offers it) or `smtps://`, with user and password. `?from=`
   * sets the sender.
   */
  url: string;
  /** Host of PUBLIC_URL. Used in message ids, and in the sender's address if the URL sets none. */
  host: string;
  timing?: SmtpTiming;
}

/** Timeouts of a connection. */
interface SmtpTiming {
  connectMs: number;
  greetingMs: number;
  /** Maximum time without data from the server during a mail. */
  silenceMs: number;
}

const require = createRequire(import.meta.url);

/**
 * Loads nodemailer when the first transport is opened. It needs 5 MB, and many services send no
 * mail.
 */
const loadMailer = (): typeof import('nodemailer') => require('nodemailer');

const defaultTiming: SmtpTiming = { connectMs: 10_000, greetingMs: 10_000, silenceMs: 30_000 };

/** Pooled connections, and mails per connection. */
const maxConnections = 4;
const maxMessages = 100;

/**
 * Matches a single address that an envelope accepts: without blanks, brackets, commas and control
 * characters.
 */
const singleAddress = /^[^\s<>,;:"()[\]\\@]+@[^\s<>,;:"()[\]\\@]+$/;

/**
 * Opens the SMTP provider (protocol/codes.md#e-mail-and-password-reset). Only this folder imports
 * nodemailer.
 */
export function openSmtp({
  url,
  host,
  timing = defaultTiming,
}: SmtpOptions): Provider<MailMessage> {
  const { transportUrl, from } = readSmtpUrl(url, host);
  const transport = loadMailer().createTransport({
    url: transportUrl,
    pool: true,
    maxConnections,
    maxMessages,
    connectionTimeout: timing.connectMs,
    greetingTimeout: timing.greetingMs,
    socketTimeout: timing.silenceMs,
    // Templates and addresses are untrusted. They must not make the library read a file or a URL.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  // Emitted for broken idle connections. A failed mail rejects its own promise.
  transport.on('error', () => undefined);
  return {
    host: new URL(transportUrl).host,
    send: (message) => sendMail(transport, { from, host }, message),
    close: async () => transport.close(),
  };
}

/**
 * Checks that the server accepts a connection, and user and password if the URL has them. Returns
 * null, or the text of the reason. Sends nothing.
 */
export async function checkSmtp(
  url: string,
  timing: SmtpTiming = defaultTiming,
): Promise<string | null> {
  const { transportUrl } = readSmtpUrl(url, 'localhost');
  const transport = loadMailer().createTransport({
    url: transportUrl,
    connectionTimeout: timing.connectMs,
    greetingTimeout: timing.greetingMs,
    socketTimeout: timing.silenceMs,
  });
  try {
    await transport.verify();
    return null;
  } catch (error) {
    const failure = readFailure(error);
    return failure.kind === 'sent' ? null : reasonText(failure.reason);
  } finally {
    transport.close();
  }
}

interface Sender {
  from: string;
  host: string;
}

/** The part of the library's transport that this module uses. */
interface Transport {
  sendMail(
    mail: Parameters<ReturnType<typeof import('nodemailer').createTransport>['sendMail']>[0],
  ): Promise<unknown>;
}

async function sendMail(
  transport: Transport,
  { from, host }: Sender,
  message: MailMessage,
): Promise<ProviderResult> {
  if (!singleAddress.test(message.to)) return { kind: 'refused', reason: 'address' };
  try {
    await transport.sendMail({
      // Addresses are objects, because the library would parse a text as a list of addresses.
      from: { name: message.fromName, address: from },
      to: { name: '', address: message.to },
      envelope: { from, to: message.to },
      subject: message.subject,
      text: message.text,
      ...(message.html === undefined ? {} : { html: message.html }),
      messageId: `<${message.id}.${message.appId}@${host}>`,
      // Suppresses automatic replies (RFC 3834 5).
      headers: { 'Auto-Submitted': 'auto-generated' },
    });
    return { kind: 'sent' };
  } catch (error) {
    return readFailure(error);
  }
}

/** Separates the `from` parameter from the URL of the library. */
function readSmtpUrl(url: string, host: string): { transportUrl: string; from: string } {
  const parsed = new URL(url);
  // The parser reads `+` as a blank, and an address contains no blank.
  const from = parsed.searchParams.get('from')?.replaceAll(' ', '+') ?? `no-reply@${host}`;
  parsed.searchParams.delete('from');
  return { transportUrl: parsed.href, from };
}
