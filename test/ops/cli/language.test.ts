import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { languageOf } from '../../../ops/cli/language.ts';
import chineseTexts from '../../../ops/cli/zh.json' with { type: 'json' };
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

describe('the Chinese texts', () => {
  const texts = Object.entries(chineseTexts);

  test('have the same values as the English texts', () => {
    const valuesOf = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    // Chinese has no plural, and adds no noun to the items that commander counts.
    const left = ['were', 'hold', 'need', 'most', 'given'];
    for (const [english, text] of texts) {
      const wanted = new Set(valuesOf(english).filter((name) => !left.includes(name ?? '')));
      expect([english, new Set(valuesOf(text))]).toEqual([english, wanted]);
    }
  });

  test('are all in use', () => {
    const root = join(import.meta.dirname, '../../..');
    const folders = [
      'ops/cli',
      'ops/import',
      'ops/move-in',
      'ops/local',
      'connectors/contract',
      'node_modules/commander/lib',
    ];
    const sources = folders
      .flatMap((folder) =>
        readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) =>
          join(root, folder, file),
        ),
      )
      .filter((file) => /\.(ts|js)$/.test(file))
      .map((file) => readFileSync(file, 'utf8').replaceAll(/\\(['"`])/g, '$1'))
      .join('\n');
    expect(
      texts.map(([english]) => english).filter((english) => !sources.includes(english)),
    ).toEqual([]);
  });
});

describe('a command in Chinese', () => {
  let app: App;
  let device: string;
  let push: string;
  beforeAll(async () => {
    app = await service.api.createApp({ dailyRecipientCap: 2 });
    await service.addApnsProfile(app);
    [device = ''] = await service.addIosInstallations(app, 1);
    await service.db.query("UPDATE installation SET topic = 'other' WHERE app_id = $1", [
      app.appId,
    ]);
    await service.dispatch();
    const sent = await run(['push', '--app', app.appId, '--alert', 'x', '--json']);
    push = sent.json().objectId;
  });

  test('shows a dry run', async () => {
    const args = ['push', '--app', app.appId, '--alert', 'x', '--dry-run', '--lang'];
    const { stdout } = await run([...args, 'zh']);
    expect(stdout).toContain('该推送会发送到 1 台设备。未发送任何内容。');
    expect(stdout).toContain('问题：\n  APNs: 没有拥有该 topic 的 APNs 推送通道');
    expect(stdout).toContain('未限速');
    expect((await run([...args, 'en'], chinese)).stdout).toContain(
      'This push would go to 1 device.',
    );
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
    expect((await sent('en')).body.warnings).toEqual([
      '"chanels" is no member of a push and was ignored.',
    ]);
  });

  test('shows reasons with remedies', async () => {
    const { stdout } = await run(['failures', push, '--app', app.appId], chinese);
    expect(stdout).toContain(
      '没有拥有该 topic 的 APNs 推送通道（no APNs profile owns the topic）\n    没有推送通道可用于这些设备',
    );
    const why = await run(['why', push, device, '--app', app.appId], chinese);
    expect(why.stdout).toMatch(/^无法通过APNs发送：没有拥有该 topic 的 APNs 推送通道/);
  });

  test('shows the findings of doctor', async () => {
    // Not the data of an `npm start` in this checkout.
    const data = { CARILLON_DATA_DIR: '/nowhere', DATABASE_URL: service.databaseUrl };
    const { stdout } = await run(['doctor'], { ...chinese, ...data });
    expect(stdout).toMatch(
      /^FAIL {2}环境变量 +CARILLON_SECRET is missing.*\n +请设置 CARILLON_SECRET，/m,
    );
    expect(stdout).toMatch(/^ok {4}迁移 {8}数据库已是最新$/m);
    expect(stdout).toMatch(/^共 \d+ 项检查，\d+ 项失败，\d+ 项需要关注$/m);
  });

  test('shows refusals', async () => {
    const args = ['why', push, 'unknown', '--app', app.appId];
    expect((await run(args, chinese)).stderr).toBe('carillon: 没有此设备。\n');
    expect((await run(args)).stderr).toBe('carillon: There is no such installation.\n');
  });

  test('shows tables and reports', async () => {
    const pushes = await run(['pushes', '--app', app.appId], chinese);
    expect(pushes.stdout).toMatch(/^推送 +状态 +设备数 +接受时间\n/);
    const result = await run(['app', 'list'], chinese);
    expect(result.stdout).toMatch(/^应用 ID +名称 +版本类型 +套餐\n/);
    expect((await run(['tokens'], chinese)).stderr).toBe(
      '错误：未知命令“tokens”\n（您是否想输入 token？）\n（加 --help 查看该命令的用法）\n',
    );
    expect((await run(['pushs'], chinese)).stderr).toContain(
      '（您是否想输入其中之一：push, pushes？）',
    );
    expect((await run(['overview'], chinese)).stdout).toContain('最近 24 小时');
    expect((await run(['scheduled', 'list', '--app', app.appId], chinese)).stdout).toBe(
      '没有等待发送的定时推送。\n',
    );
  });

  test('shows wrong usage', async () => {
    expect((await run(['pause'], chinese)).stderr).toBe(
      '错误：缺少必需的参数“objectId”\n（加 --help 查看该命令的用法）\n',
    );
    expect((await run(['push', '--app', app.appId], chinese)).stderr).toBe(
      'carillon: 请指定推送内容：--alert 或 --data\n',
    );
    const id = await run(['app', 'create', 'Shop', '--app-id', 'x', '--lang', 'zh']);
    expect(id.stderr).toMatch(/^carillon: --app-id 必须是 8 到 64 个字母/);
    const limit = await run(['pushes', '--limit', 'many', '--lang', 'zh']);
    expect(limit.stderr).toBe('carillon: --limit 应为不小于 1 的整数\n');
  });

  test('names gateways', async () => {
    expect((await run(['meta'], chinese)).stdout).toMatch(/^vendor_a +华为 /m);
    expect((await run(['meta'])).stdout).toMatch(/^vendor_a +Huawei /m);
  });

  test('asks and confirms', async () => {
    const question = await run(['sms-template', 'delete', 'Code', '--app', app.appId], chinese);
    expect(question.stderr).toBe(
      '删除 Code？ [y/N] carillon: 未删除任何内容：请回答 y，或加上 --yes。\n',
    );
    const frozen = await run(['freeze', '--app', app.appId], chinese);
    expect(frozen.stdout).toMatch(/^应用 +开始时间 +操作人 +原因\n/);
    expect((await run(['unfreeze', '--app', app.appId], chinese)).stdout).toBe(
      '已解除冻结：被暂停的推送继续发送。\n',
    );
  });

  test('explains credentials', async () => {
    const { stdout } = await run(['profile', 'help', 'huawei'], chinese);
    expect(stdout).toContain('AppGallery Connect 的“项目设置”→“常规”');
    expect(stdout).toMatch(/^endpoint +替代通道自身地址的基础 URL/m);
    const english = (await run(['profile', 'help', 'huawei', '--json'])).json();
    expect((await run(['profile', 'help', 'huawei', '--json'], chinese)).json()).toEqual(english);
  });

  test('prints the same JSON', async () => {
    const failures = ['failures', push, '--app', app.appId, '--json'];
    expect((await run(failures, chinese)).json()).toEqual((await run(failures)).json());
    const refused = await run([
      'why',
      push,
      'unknown',
      '--app',
      app.appId,
      '--json',
      '--lang',
      'zh',
    ]);
    expect(refused.json()).toEqual({ code: 404, error: 'There is no such installation.' });
    const wrong = await run(['push', '--app', app.appId, '--lang', 'zh', '--json']);
    expect(wrong.json()).toEqual({ error: 'say what to send: --alert or --data' });
    expect((await run(['pause', '--json'], chinese)).json()).toEqual({
      error: "missing required argument 'objectId'",
    });
  });

  test('supports two languages', async () => {
    expect((await run(['app', 'list', '--lang', 'fr'])).code).toBe(2);
  });
});
