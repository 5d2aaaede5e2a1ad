import { afterEach, expect, test } from 'vitest';
import { chooseLanguage } from '../../../ops/cli/language.ts';
import { greeting } from '../../../ops/local/greeting.ts';

const details = {
  publicUrl: 'http://127.0.0.1:8080',
  metricsPort: 9464,
  metricsHost: '127.0.0.1',
  adminToken: 'a-token-of-the-service',
  dataDir: '/data/carillon',
  loginLink: undefined,
};
const demo = {
  appId: 'id',
  appKey: 'key',
  masterKey: 'master',
  installationIds: [],
  deviceToken: 'token',
};
const pages = { sandbox: 'http://127.0.0.1:1', tryWebPush: 'http://localhost:8090/' };

test.for([
  ['environment', 'admin token     as CARILLON_ADMIN_TOKEN has it'],
  ['made', 'admin token     a-token-of-the-service   (kept in /data/carillon/admin-token)'],
  ['file', 'admin token     in /data/carillon/admin-token'],
] as const)('the greeting names the source of the admin token: %s', ([tokenSource, line]) => {
  const text = greeting({ ...details, tokenSource }, demo, pages);
  expect(text.split('\n').filter((one) => one.startsWith('admin token'))).toEqual([line]);
  if (tokenSource !== 'made') expect(text).not.toContain(details.adminToken);
  if (tokenSource === 'environment') expect(text).not.toContain('/admin-token');
});

afterEach(() => chooseLanguage('en'));

test('the greeting for a Chinese operator is Chinese', () => {
  chooseLanguage('zh');
  const lines = greeting({ ...details, tokenSource: 'made' }, demo, pages).split('\n');
  expect(lines).toContain('控制台          http://127.0.0.1:8080/console');
  expect(lines).toContain(
    '管理令牌        a-token-of-the-service   （保存在 /data/carillon/admin-token）',
  );
  expect(lines).toContain('试用            http://localhost:8090/   （向此浏览器发送推送）');
  expect(lines).toContain('# 向所有设备推送');
});
