import { dayMs } from '../../../shared/clock.ts';
import { openCertificateAuthority } from '../../sandbox/kit/certificates.ts';
import { ended, repeat, type Scene, type Stage, type StageApp } from './stage.ts';

const body = { data: { alert: 'A fault' } };

/** Repeatedly sends pushes to new devices of an app. */
async function keepPushing(
  stage: Stage,
  app: StageApp,
  { signal, devices }: { signal: AbortSignal; devices: number },
): Promise<void> {
  await repeat(signal, 1000, async () => {
    await stage.addDevices(app, devices);
    await stage.call(app, '/1.1/push', body);
  });
}

/** A gateway sends the same reply to every request. */
function refusing(answer: { status: number; reason: string }, devices: number): Scene['run'] {
  return async (stage, signal) => {
    const app = await stage.createApp({ pushCallsPerMinute: 1000 });
    stage.apns.misbehave({ kind: 'answer', ...answer });
    await keepPushing(stage, app, { signal, devices });
    stage.apns.behave();
  };
}

/**
 * As `refusing` with an invalid token. Meanwhile the dispatchers read the usage of apps every two
 * seconds.
 */
function refusingTokens(devices: number): Scene['run'] {
  const refuse = refusing({ status: 400, reason: 'BadDeviceToken' }, devices);
  return async (stage, signal) => {
    await Promise.all([refuse(stage, signal), repeat(signal, 2000, () => readAccounts(stage))]);
  };
}

/** Makes the dispatchers read the usage of apps and profiles now. */
const readAccounts = ({ db }: Stage) =>
  db.query('UPDATE shared_reading SET accounts_next_at = now()');

/**
 * Account problems of an app: a nearly used cap, a used-up quota of a gateway, and a certificate
 * that expires soon.
 */
async function useUp(stage: Stage, signal: AbortSignal): Promise<void> {
  const app = await stage.createApp({ dailyRecipientCap: 10 });
  await stage.addDevices(app, 10);
  await stage.call(app, '/1.1/push', body);
  const authority = await openCertificateAuthority();
  const pair = await authority.issueClient({
    commonName: 'Faults',
    userId: 'com.example.app',
    validForMs: 5 * dayMs,
  });
  const { url: endpoint, ca } = stage.apns;
  const profile = { auth: 'certificate', ...pair, topic: 'com.example.app', endpoint, ca };
  await stage.admin('PUT', `/apps/${app.appId}/profiles/apns/ends`, profile);
  // Simulates the reply of a vendor whose daily quota is used up.
  await stage.db.query(
    `INSERT INTO gateway_day (app_id, connector, profile, class, day, recipients, closed_reason)
     VALUES ($1, 'apns', '_default', '', (now() AT TIME ZONE 'Asia/Shanghai')::date, 10, 'quota')
     ON CONFLICT (app_id, connector, profile, class, day) DO UPDATE SET closed_reason = 'quota'`,
    [app.appId],
  );
  await repeat(signal, 2000, () => readAccounts(stage));
}

export const deliveryScenes: readonly Scene[] = [
  {
    alerts: ['CarillonCertificateEnds', 'CarillonQuotaUsedUp', 'CarillonCapNear'],
    isIndependent: true,
    run: useUp,
  },
  {
    alerts: ['CarillonWebhookBehind', 'CarillonWebhookOff'],
    isIndependent: true,
    async run(stage, signal) {
      const { appId } = await stage.createApp();
      // Simulates a receiver that has not answered for hours, and one that answered 410.
      await stage.db.query(
        `INSERT INTO webhook (app_id, name, events, format, secrets, is_enabled, off_reason)
         VALUES ($1, 'silent', '{}', 'standard', '', true, NULL),
                ($1, 'gone', '{}', 'standard', '', false, 'gone')`,
        [appId],
      );
      await stage.db.query(
        `INSERT INTO webhook_delivery (app_id, webhook, type, source_app, occurred_at, data,
           created_at, next_at)
         VALUES ($1, 'silent', 'push.done', $1, now(), '{}', now() - interval '3 hours',
           now() + interval '1 day')`,
        [appId],
      );
      await repeat(signal, 2000, () => readAccounts(stage));
      await stage.db.query('DELETE FROM webhook WHERE app_id = $1', [appId]);
    },
  },
  {
    alerts: ['CarillonInvalidTokensJump', 'CarillonDeliveryFalls', 'CarillonTokensKept'],
    run: refusingTokens(300),
  },
  {
    alerts: ['CarillonCredentialsRefused'],
    run: refusing({ status: 403, reason: 'InvalidProviderToken' }, 5),
  },
  {
    alerts: ['CarillonBreakerOpen'],
    run: refusing({ status: 500, reason: 'InternalServerError' }, 50),
  },
  {
    alerts: ['CarillonMessagesFail'],
    async run(stage, signal) {
      const app = await stage.createApp();
      let number = 13_800_000_000;
      await repeat(signal, 500, () => {
        number += 1;
        return stage.call(app, '/1.1/requestSmsCode', { mobilePhoneNumber: `+86${number}` });
      });
    },
  },
  {
    alerts: ['CarillonSmsPumping'],
    async run(stage, signal) {
      const app = await stage.createApp();
      // Simulates several hundred codes to a country without a successful verification.
      await stage.db.query(
        `INSERT INTO sms_breaker VALUES ($1, '+88', now(), now() + interval '10 minutes')`,
        [app.appId],
      );
      await ended(signal);
      await stage.db.query('DELETE FROM sms_breaker');
    },
  },
];
