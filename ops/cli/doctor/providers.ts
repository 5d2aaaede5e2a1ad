import { once } from 'node:events';
import { connect, isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type Finding, fail, ok, reasonOf } from '../../../api/services/operator/doctor/finding.ts';
import { checkSmtp } from '../../../connectors/smtp/index.ts';
import type { Config } from '../../../shared/config/config.ts';

const timeoutMs = 5000;
const timing = { connectMs: timeoutMs, greetingMs: timeoutMs, silenceMs: timeoutMs };

/** Checks the configured mail and SMS providers. Shows no URL of a provider, because it may contain a password. */
export async function checkProviders({ smtpUrl, smsWebhookUrl }: Config): Promise<Finding[]> {
  return [
    ...(smtpUrl === undefined ? [] : [await checkMail(smtpUrl)]),
    ...(smsWebhookUrl === undefined ? [] : [await checkWebhook(smsWebhookUrl)]),
  ];
}

async function checkMail(url: string): Promise<Finding> {
  const reason = await checkSmtp(url, timing);
  if (reason === null) return ok('mail', 'the server of SMTP_URL lets us in');
  const advice = reason.startsWith('authentication')
    ? 'Correct user and password in SMTP_URL.'
    : 'Correct SMTP_URL, or start its server: mails wait until then.';
  return fail('mail', `the server of SMTP_URL does not let us in: ${reason}`, advice);
}

/** Checks the webhook by a connection only: a request could cause a message. */
async function checkWebhook(text: string): Promise<Finding> {
  const url = new URL(text);
  const isTls = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const target = { host, port: Number(url.port) || (isTls ? 443 : 80) };
  // TLS allows no IP addresses as server names (RFC 6066 3).
  const options = isIP(host) ? target : { ...target, servername: host };
  const socket = isTls ? connectTls(options) : connect(target);
  try {
    await once(socket, isTls ? 'secureConnect' : 'connect', { signal: AbortSignal.timeout(timeoutMs) });
    return ok('messages', 'the server of SMS_WEBHOOK_URL can be reached');
  } catch (error) {
    const advice = 'Correct SMS_WEBHOOK_URL, or start its server: messages wait until then.';
    return fail('messages', `the server of SMS_WEBHOOK_URL cannot be reached: ${reasonOf(error)}`, advice);
  } finally {
    socket.on('error', () => undefined);
    socket.destroy();
  }
}
