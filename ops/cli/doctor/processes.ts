import { once } from 'node:events';
import { connect, isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { OidcProvider } from '../../../api/services/operator/access/oidc-provider.ts';
import { type Finding, found, reasonOf } from '../../../api/services/operator/doctor/checks.ts';
import { smsReceiptAddress } from '../../../api/services/sms/receipts.ts';
import { checkSms } from '../../../connectors/sms/index.ts';
import { checkSmtp } from '../../../connectors/smtp/index.ts';
import { systemClock } from '../../../shared/clock.ts';
import type { Config, OidcSettings } from '../../../shared/config/config.ts';
import { Vault } from '../../../shared/crypto.ts';
import type { SmsProviderUrl } from '../../../shared/domain/messages/sms-provider.ts';
import { reasonText } from '../../../shared/domain/reasons.ts';

const timeoutMs = 5000;

/** Checks that a process is ready. */
export async function checkProcess(name: 'api' | 'dispatcher', url: string): Promise<Finding> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(timeoutMs) });
    await response.body?.cancel();
    if (response.ok) return found({ name, status: 'ok', code: 'processReady', params: { url } });
    const code = response.status === 503 ? 'processUnready' : 'processOther';
    return found({ name, status: 'fail', code, params: { url, status: response.status } });
  } catch (error) {
    const code = name === 'api' ? 'apiSilent' : 'dispatcherSilent';
    return found({ name, status: 'fail', code, params: { url, why: reasonOf(error) } });
  }
}

/**
 * Checks that the api accepts the admin token. Requests an app with an impossible id: 404 means
 * that the token is accepted, 401 that it is refused.
 */
export async function checkAdminToken(
  url: string,
  adminToken: string | undefined,
): Promise<Finding[]> {
  const name = 'admin token';
  if (adminToken === undefined) return [found({ name, status: 'fail', code: 'adminTokenMissing' })];
  try {
    const response = await fetch(`${url}/console/api/apps/-`, {
      headers: { Authorization: `Bearer ${adminToken}` },
      signal: AbortSignal.timeout(timeoutMs),
    });
    await response.body?.cancel();
    if (response.status !== 401) return [found({ name, status: 'ok', code: 'adminTokenFine' })];
    return [found({ name, status: 'fail', code: 'adminTokenRefused' })];
  } catch {
    // `checkProcess` reports an api that does not respond.
    return [];
  }
}

const providerTimeoutMs = 5000;
const timing = {
  connectMs: providerTimeoutMs,
  greetingMs: providerTimeoutMs,
  silenceMs: providerTimeoutMs,
};

/**
 * Checks the configured mail and SMS providers. Does not show their URLs, because a URL may contain
 * a password.
 */
export async function checkProviders({
  smtpUrl,
  sms,
  publicUrl,
  secrets,
}: Config): Promise<Finding[]> {
  return [
    ...(smtpUrl === undefined ? [] : [await checkMail(smtpUrl)]),
    ...(sms === undefined ? [] : await checkSmsProvider(sms, { publicUrl, secrets })),
  ];
}

/**
 * Checks the SMS provider: the webhook by connecting, the built-in ones by a call that needs the
 * credentials and sends nothing. Says where the provider delivers its receipts.
 */
async function checkSmsProvider(
  sms: SmsProviderUrl,
  { publicUrl, secrets }: Pick<Config, 'publicUrl' | 'secrets'>,
): Promise<Finding[]> {
  if (sms.provider === 'webhook') return [await checkWebhook(sms.url)];
  const { provider } = sms;
  const name = 'messages';
  const timing = { connectMs: timeoutMs, requestMs: timeoutMs, drainMs: 0 };
  const why = await checkSms(sms, { clock: systemClock, timing });
  const checked =
    why === null
      ? found({ name, status: 'ok', code: 'smsFine', params: { provider } })
      : found({
          name,
          status: 'fail',
          code: 'smsRefused',
          params: { provider, why: reasonText(why) },
        });
  if (provider === 'twilio') return [checked];
  const url = smsReceiptAddress(publicUrl, new Vault(secrets), provider);
  const params = { provider, url };
  return [checked, found({ name, status: 'ok', code: 'smsReceipts', params })];
}

async function checkMail(url: string): Promise<Finding> {
  const reason = await checkSmtp(url, timing);
  if (reason === null) return found({ name: 'mail', status: 'ok', code: 'mailFine' });
  const code = reason.startsWith('authentication') ? 'mailRefused' : 'mailAway';
  return found({ name: 'mail', status: 'fail', code, params: { why: reason } });
}

/** Checks that the issuer of OpenID Connect gives its configuration. Logs nobody in. */
export async function checkIssuer(oidc: OidcSettings): Promise<Finding> {
  const name = 'single sign-on';
  const { host } = new URL(oidc.issuer);
  try {
    await new OidcProvider(oidc, systemClock).check();
    return found({ name, status: 'ok', code: 'issuerFine', params: { host } });
  } catch (error) {
    const params = { host, why: reasonOf(error) };
    return found({ name, status: 'fail', code: 'issuerAway', params });
  }
}

/** Checks the webhook only by connecting, because a request could send a message. */
async function checkWebhook(text: string): Promise<Finding> {
  const url = new URL(text);
  const isTls = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const target = { host, port: Number(url.port) || (isTls ? 443 : 80) };
  // TLS does not allow IP addresses as server names (RFC 6066 3).
  const options = isIP(host) ? target : { ...target, servername: host };
  const socket = isTls ? connectTls(options) : connect(target);
  try {
    await once(socket, isTls ? 'secureConnect' : 'connect', {
      signal: AbortSignal.timeout(providerTimeoutMs),
    });
    return found({ name: 'messages', status: 'ok', code: 'webhookFine' });
  } catch (error) {
    const params = { why: reasonOf(error) };
    return found({ name: 'messages', status: 'fail', code: 'webhookAway', params });
  } finally {
    socket.on('error', () => undefined);
    socket.destroy();
  }
}
