import { beforeAll, describe, expect, test } from 'vitest';
import { languageOf } from '../../../ops/cli/language.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { type CliResult, carillon } from '../../support/cli.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();
const chinese = { LANG: 'zh_CN.UTF-8' };

const run = (args: string[], env: Record<string, string> = {}): Promise<CliResult> =>
  carillon(args, {
    env: {
      PUBLIC_URL: service.api.url,
      CARILLON_ADMIN_TOKEN: testConfig(service.databaseUrl).adminToken,
      ...env,
    },
  });

test.for([
  [{}, 'en'],
  [{ LANG: 'zh_CN.UTF-8' }, 'zh'],
  [{ LANG: 'zh' }, 'zh'],
  [{ LANG: 'C.UTF-8' }, 'en'],
  [{ LANG: 'zh_CN.UTF-8', LC_MESSAGES: 'en_GB.UTF-8' }, 'en'],
  [{ LANG: 'en_GB.UTF-8', LC_MESSAGES: 'zh_TW.UTF-8' }, 'zh'],
  [{ LANG: 'zh_CN.UTF-8', LC_MESSAGES: 'zh_CN.UTF-8', LC_ALL: 'C' }, 'en'],
  [{ LANG: 'zh_CN.UTF-8', LC_ALL: '' }, 'zh'],
] as const)('the locale %j is %s', ([env, language]) => {
  expect(languageOf(env)).toBe(language);
});

describe('a command in Chinese', () => {
  let app: App;
  let device: string;
  let push: string;
  beforeAll(async () => {
    app = await service.api.createApp({ dailyRecipientCap: 2 });
    await service.addApnsProfile(app);
    [device = ''] = await service.addIosInstallations(app, 1);
    await service.db.query("UPDATE installation SET topic = 'other' WHERE app_id = $1", [app.appId]);
    await service.dispatch();
    const sent = await run(['push', '--app', app.appId, '--alert', 'x', '--json']);
    push = sent.json().objectId;
  });

  test('shows a dry run', async () => {
    const args = ['push', '--app', app.appId, '--alert', 'x', '--dry-run', '--lang'];
    const { stdout } = await run([...args, 'zh']);
    expect(stdout).toContain('该推送会发送到 1 台设备。未发送任何内容。');
    expect(stdout).toContain('问题：\n  APNs: 没有拥有该 topic 的 APNs 推送配置');
    expect(stdout).toContain('没有指定速率');
    expect((await run([...args, 'en'], chinese)).stdout).toContain('This push would go to 1 devices.');
  });

  test('shows warnings about a push', async () => {
    const body = { data: { alert: 'x' }, where: {}, chanels: ['a'] };
    const sent = (language: string) =>
      service.api.request('POST', `/console/api/apps/${app.appId}/push`, {
        admin: true,
        headers: { 'Accept-Language': language },
        body,
      });
    expect((await sent('zh')).body.warnings).toEqual(['推送没有成员“chanels”，已忽略。']);
    expect((await sent('en')).body.warnings).toEqual(['"chanels" is no member of a push and was ignored.']);
  });

  test('shows reasons with remedies', async () => {
    const { stdout } = await run(['failures', push, '--app', app.appId], chinese);
    expect(stdout).toContain(
      '没有拥有该 topic 的 APNs 推送配置（no APNs profile owns the topic）\n    没有推送配置可用于这些设备',
    );
    const why = await run(['why', push, device, '--app', app.appId], chinese);
    expect(why.stdout).toMatch(/^无法通过APNs发送：没有拥有该 topic 的 APNs 推送配置/);
  });

  test('shows what the doctor finds', async () => {
    const { stdout } = await run(['doctor'], { ...chinese, DATABASE_URL: service.databaseUrl });
    expect(stdout).toMatch(/^FAIL {2}环境变量 +CARILLON_SECRET is missing.*\n +请设置 CARILLON_SECRET，/m);
    expect(stdout).toMatch(/^ok {4}迁移 {8}数据库已是最新$/m);
    expect(stdout).toMatch(/^共 \d+ 项检查，\d+ 项失败，\d+ 项需要关注$/m);
  });

  test('shows refusals', async () => {
    const args = ['why', push, 'unknown', '--app', app.appId];
    expect((await run(args, chinese)).stderr).toBe('carillon: 没有此设备。\n');
    expect((await run(args)).stderr).toBe('carillon: There is no such installation.\n');
  });

  test('prints the same JSON', async () => {
    const failures = ['failures', push, '--app', app.appId, '--json'];
    expect((await run(failures, chinese)).json()).toEqual((await run(failures)).json());
    const refused = await run(['why', push, 'unknown', '--app', app.appId, '--json', '--lang', 'zh']);
    expect(refused.json()).toEqual({ code: 404, error: 'There is no such installation.' });
  });

  test('knows two languages', async () => {
    expect((await run(['app', 'list', '--lang', 'fr'])).code).toBe(2);
  });
});
