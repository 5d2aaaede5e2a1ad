import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { table } from './markdown.ts';

/**
 * Contents of docs/clients.json for the README's table of clients. `driven` lists the clients that
 * `test/clients` runs; the last run with `UPDATE_CLIENTS=1` wrote it. `byHand` lists the clients
 * that were tried by hand or only read.
 */
const clients = z.strictObject({
  driven: z.array(
    z.strictObject({
      name: z.string(),
      version: z.string(),
      topics: z.array(z.string()),
      test: z.string(),
      date: z.iso.date(),
    }),
  ),
  byHand: z.array(z.strictObject({ name: z.string(), how: z.string(), date: z.iso.date() })),
});

/** Texts of the table in one language. */
interface Language {
  headings: string[];
  /** Renders how a client was run by tests. */
  runByTests: (topics: string[]) => string;
  /** Translates a name, a topic or the way in which a client was tried. */
  textOf: (english: string) => string;
}

const english: Language = {
  headings: ['client', 'version', 'how it was tried', 'on'],
  runByTests: (topics) => `run by tests: ${topics.join(', ')}`,
  textOf: (text) => text,
};

const chinese: Language = {
  headings: ['客户端', '版本', '怎样试过', '日期'],
  runByTests: (topics) => `由测试运行：${topics.join('、')}`,
  textOf: (text) => {
    const found = inChinese[text];
    if (found === undefined)
      throw new Error(`ops/docs/clients-table.ts lacks the Chinese for: ${text}`);
    return found;
  },
};

/** Chinese texts by the texts of docs/clients.json. */
const inChinese: Readonly<Record<string, string>> = {
  'Java (`cn.leancloud:storage-core`, Maven Central)':
    'Java（`cn.leancloud:storage-core`，Maven Central）',
  'Java push receiver (`cn.leancloud:realtime-core`, Maven Central)':
    'Java 推送接收端（`cn.leancloud:realtime-core`，Maven Central）',
  'JavaScript (`leancloud-storage`, npm)': 'JavaScript（`leancloud-storage`，npm）',
  'Node function engine (`leanengine`, npm)': 'Node 云引擎（`leanengine`，npm）',
  'Python (`leancloud`, PyPI)': 'Python（`leancloud`，PyPI）',
  'Python function engine (`leancloud`, PyPI)': 'Python 云引擎（`leancloud`，PyPI）',
  'Realtime library (`leancloud-realtime`, npm)': '实时通信库（`leancloud-realtime`，npm）',
  'Web pages (`leancloud-push`, npm)': '网页（`leancloud-push`，npm）',
  'Go (`github.com/leancloud/go-sdk` v0.3.2)': 'Go（`github.com/leancloud/go-sdk` v0.3.2）',
  'PHP (`leancloud/leancloud-sdk`)': 'PHP（`leancloud/leancloud-sdk`）',
  'Objective-C, Swift, Android (push SDKs of the vendors), Flutter, C#':
    'Objective-C、Swift、Android（各厂商的推送 SDK）、Flutter、C#',
  'run by hand; 83 of 90 checks passed, the others are faults of the SDK':
    '手工运行；90 项检查中通过 83 项，其余是 SDK 的缺陷',
  'run by hand, as a client': '作为客户端手工运行',
  'read from their source, not run': '只读过源码，没有运行',
  'sign-up': '注册',
  login: '登录',
  become: 'become',
  'codes by SMS': '短信验证码',
  mail: '邮件',
  'third-party accounts': '第三方账号',
  roles: '角色',
  queries: '查询',
  captcha: '图形验证码',
  installations: '安装记录',
  push: '推送',
  functions: '云函数',
  rpc: 'rpc',
  errors: '错误',
  'route and login on the device channel': '设备通道的路由和登录',
  'pushes over the device channel': '经由设备通道的推送',
  'hooks of `_User`': '`_User` 的 Hook',
  sessions: '会话',
  'users that delete themselves': '用户删除自己的账号',
  routing: '路由',
  receiving: '接收',
  acknowledging: '确认',
  heartbeats: '心跳',
  goaway: 'goaway',
  registration: '注册设备',
  channels: '频道',
};

const [begin, end] = ['<!-- clients: written by `npm run docs` -->', '<!-- end of clients -->'];

/** Returns README.md with the table generated from docs/clients.json. */
export const readmeWithClients = (): Promise<string> => withClients('README.md', english);

/** Returns README.zh.md with the same table in Chinese. */
export const chineseReadmeWithClients = (): Promise<string> => withClients('README.zh.md', chinese);

async function withClients(name: string, { headings, runByTests, textOf }: Language) {
  const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8');
  const readme = await read(name);
  const { driven, byHand } = clients.parse(JSON.parse(await read('docs/clients.json')));
  const [before = '', rest = ''] = readme.split(begin);
  const [, after] = rest.split(end);
  if (after === undefined) throw new Error(`${name} lacks the lines ${begin} and ${end}`);
  // Several test files may run the same client.
  const byClient = Map.groupBy(driven, ({ name, version }) => JSON.stringify([name, version]));
  const rows = [...byClient.values()].map((parts) => [
    textOf(parts[0]?.name ?? ''),
    parts[0]?.version ?? '',
    runByTests(parts.flatMap(({ topics }) => topics).map(textOf)),
    parts.map(({ date }) => date).toSorted()[0] ?? '',
  ]);
  const tried = byHand.map(({ name, how, date }) => [textOf(name), '', textOf(how), date]);
  const content = table(headings, [...rows, ...tried]);
  return `${before}${begin}\n${content}\n${end}${after}`;
}
