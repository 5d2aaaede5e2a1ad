import { createTransport } from 'nodemailer';
import type { MailMessage, Provider, ProviderResult } from '../provider.ts';
import { readFailure } from './errors.ts';

export interface SmtpOptions {
  /** `smtp://` (STARTTLS where offered) or `smtps://`, with user and password; `?from=` names the sender. */
  url: string;
  /** Host of PUBLIC_URL: for the sender's address where the URL names none, and for message ids. */
  host: string;
  timing?: SmtpTiming;
}

export interface SmtpTiming {
  connectMs: number;
  greetingMs: number;
  /** Silence of the server in the middle of a mail. */
  silenceMs: number;
}

const defaultTiming: SmtpTiming = { connectMs: 10_000, greetingMs: 10_000, silenceMs: 30_000 };

/** Connections kept to the server, and mails sent over each before it is renewed. */
const maxConnections = 4;
const maxMessages = 100;

/** An address as an envelope takes it: one, without blanks, brackets, commas or control characters. */
const singleAddress = /^[^\s<>,;:"()[\]\\@]+@[^\s<>,;:"()[\]\\@]+$/;

/** Mail over SMTP (protocol/codes.md#e-mail-and-password-reset). The only home of nodemailer. */
export function openSmtp({ url, host, timing = defaultTiming }: SmtpOptions): Provider<MailMessage> {
  const { transportUrl, from } = readSmtpUrl(url, host);
  const transport = createTransport({
    url: transportUrl,
    pool: true,
    maxConnections,
    maxMessages,
    connectionTimeout: timing.connectMs,
    greetingTimeout: timing.greetingMs,
    socketTimeout: timing.silenceMs,
    // Templates and addresses come from outside: nothing in them may name a file or a URL to read.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  // The pool tells of an idle connection that broke; each mail hears of its own failure.
  transport.on('error', () => undefined);
  return {
    send: (message) => sendMail(transport, { from, host }, message),
    close: async () => transport.close(),
  };
}

/**
 * Whether the server greets us, and takes user and password where the URL has them: null, or the reason in the words of
 * `readFailure`. Nothing is sent.
 */
export async function checkSmtp(url: string, timing: SmtpTiming = defaultTiming): Promise<string | null> {
  const { transportUrl } = readSmtpUrl(url, 'localhost');
  const transport = createTransport({
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
    return failure.kind === 'sent' ? null : failure.reason;
  } finally {
    transport.close();
  }
}

interface Sender {
  from: string;
  host: string;
}

/** The part of a transport that is used here. */
interface Transport {
  sendMail(mail: Parameters<ReturnType<typeof createTransport>['sendMail']>[0]): Promise<unknown>;
}

async function sendMail(
  transport: Transport,
  { from, host }: Sender,
  message: MailMessage,
): Promise<ProviderResult> {
  if (!singleAddress.test(message.to)) return { kind: 'refused', reason: 'address' };
  try {
    await transport.sendMail({
      // As objects: a text would be read as a list of addresses.
      from: { name: message.fromName, address: from },
      to: { name: '', address: message.to },
      envelope: { from, to: message.to },
      subject: message.subject,
      text: message.text,
      ...(message.html === undefined ? {} : { html: message.html }),
      messageId: `<${message.id}.${message.appId}@${host}>`,
      // Automatic answers are not wanted (RFC 3834 5).
      headers: { 'Auto-Submitted': 'auto-generated' },
    });
    return { kind: 'sent' };
  } catch (error) {
    return readFailure(error);
  }
}

/** Takes our own parameter off the URL; what is left is the library's to read. */
function readSmtpUrl(url: string, host: string): { transportUrl: string; from: string } {
  const parsed = new URL(url);
  const from = parsed.searchParams.get('from') ?? `no-reply@${host}`;
  parsed.searchParams.delete('from');
  return { transportUrl: parsed.href, from };
}
