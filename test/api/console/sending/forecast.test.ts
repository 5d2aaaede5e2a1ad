import { expect, test } from 'vitest';
import { minuteMs, systemClock } from '../../../../shared/clock.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { ReplyText } from '../../../../shared/domain/reasons.ts';
import type { Language } from '../../../../shared/domain/texts/catalogue.ts';
import { writeReplyText } from '../../../../shared/domain/texts/texts.ts';
import { useTestService } from '../../../support/service.ts';
import { changeDevices, insertUsage } from '../../../support/tables.ts';

const service = useTestService();
const data = { alert: 'Hello' };

async function explain(app: App, body: object) {
  const path = `/console/api/apps/${app.appId}/push/explain`;
  const reply = await service.api.request('POST', path, { admin: true, body });
  expect([reply.status, reply.body]).toEqual([200, expect.any(Object)]);
  return reply.body;
}

test('a dry run has its sentences by code, for English and Chinese', async () => {
  const app = await service.api.createApp({ dailyRecipientCap: 2 });
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, 3);
  await changeDevices(service.db, app, { topic: 'other' });
  const { limits, pace, texts, connectors } = await explain(app, { data, flow_control: 10 });
  const written = (language: Language) =>
    texts.limits.map((one: ReplyText) => writeReplyText('forecasts', one, language));
  expect(written('en')).toEqual(limits);
  expect(written('zh')).toEqual([
    expect.stringContaining('每日接收上限 2'),
    expect.stringMatching(/\p{Script=Han}/u),
  ]);
  expect(texts.limits).toMatchObject([
    { code: 'dailyCap', params: { cap: 2, left: 2, over: 1 } },
    { code: 'slowFlowControl', params: { asked: 10, used: 1000 } },
  ]);
  expect(texts).toMatchObject({ pace: { code: 'paceAsked' }, warning: null });
  expect(writeReplyText('forecasts', texts.pace, 'en')).toBe(pace);
  const { problem, problems } = connectors.apns;
  const why = { text: 'no APNs profile owns the topic', code: 'noApnsProfileOfTopic', params: {} };
  expect(problems).toEqual([{ code: 'unserved', params: { n: 3, why } }]);
  expect(writeReplyText('forecasts', problems[0], 'en')).toBe(problem);
  expect(writeReplyText('forecasts', problems[0], 'zh')).toContain(
    '没有拥有该 topic 的 APNs 推送通道（no APNs profile owns the topic）',
  );
});

test('the forecast adds the usage of the day, scheduled pushes and the draft', async () => {
  const app = await service.api.createApp({ dailyRecipientCap: 10 });
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, 4);
  await insertUsage(service.db, app, { recipients: 3 });
  await service.db.query(
    `INSERT INTO gateway_day (app_id, connector, profile, class, day, recipients, closed_reason)
     SELECT $1, 'apns', '_default', class, (now() AT TIME ZONE 'Asia/Shanghai')::date, n, why
       FROM (VALUES ('', 7, NULL), ('ad', 0, 'quota_exceeded')) AS d (class, n, why)`,
    [app.appId],
  );
  expect((await explain(app, { data })).forecast).toMatchObject({
    scheduledPushes: 0,
    scheduledIsLeast: false,
    cap: { zone: 'UTC', used: 3, scheduled: 0, draft: 4, limit: 10, over: 0 },
    quotas: {
      zone: 'Asia/Shanghai',
      results: [
        {
          connector: 'apns',
          profile: '_default',
          used: 7,
          draft: 4,
          closedReason: 'quota_exceeded',
        },
      ],
    },
  });
  // All pushes of this test have the same time, so that they are on the same day whenever the test
  // runs.
  const push_time = new Date(systemClock.now() + 5 * minuteMs).toISOString();
  const schedule = () =>
    service.api.request('POST', '/1.1/push', { app, master: true, body: { data, push_time } });
  await schedule();
  const { cap, quotas, ...counted } = (await explain(app, { data, push_time })).forecast;
  expect(counted).toEqual({ scheduledPushes: 1, scheduledIsLeast: false });
  expect([cap.scheduled, quotas.results[0].scheduled]).toEqual([4, 4]);
  for (let i = 0; i < 5; i += 1) await schedule();
  expect((await explain(app, { data, push_time })).forecast).toMatchObject({
    scheduledPushes: 5,
    scheduledIsLeast: true,
    cap: { scheduled: 20, over: 4 },
  });
});
