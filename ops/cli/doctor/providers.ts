import { once } from 'node:events';
import { connect, isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type Finding, found, reasonOf } from '../../../api/services/operator/doctor/finding.ts';
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
  if (reason === null) return found({ name: 'mail', status: 'ok', code: 'mailFine' });
  const code = reason.startsWith('authentication') ? 'mailRefused' : 'mailAway';
  return found({ name: 'mail', status: 'fail', code, params: { why: reason } });
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
    return found({ name: 'messages', status: 'ok', code: 'webhookFine' });
  } catch (error) {
    const params = { why: reasonOf(error) };
    return found({ name: 'messages', status: 'fail', code: 'webhookAway', params });
  } finally {
    socket.on('error', () => undefined);
    socket.destroy();
  }
}
