import { posix } from 'node:path';
import { defineConfig } from 'vitepress';

/**
 * Address of the repository's files, such as https://git.example/carillon/blob/main; without it
 * links to code become plain text.
 */
const repository = process.env.REPOSITORY_URL?.replace(/\/$/, '');

const guide = [
  { text: 'Getting started', link: '/getting-started' },
  { text: 'Concepts', link: '/concepts' },
  { text: 'Sending', link: '/sending' },
  { text: 'Live Activities', link: '/live-activities' },
  { text: 'Web Push', link: '/web-push' },
  { text: 'Deliveries and opens', link: '/opens' },
  { text: 'Webhooks', link: '/webhooks' },
  { text: 'Moving in', link: '/moving-in' },
];

const clients = [
  { text: 'Overview', link: '/clients/' },
  { text: 'iOS', link: '/clients/ios' },
  { text: 'Android with FCM', link: '/clients/android-fcm' },
  { text: 'Android in China', link: '/clients/android-china' },
  { text: 'HarmonyOS', link: '/clients/harmonyos' },
  { text: 'Web', link: '/clients/web' },
  { text: 'Flutter', link: '/clients/flutter' },
  { text: 'React Native', link: '/clients/react-native' },
  { text: 'Mini program and device channel', link: '/clients/mini-program' },
];

const vendorCredentials = [
  { text: 'Overview', link: '/credentials/' },
  { text: 'APNs', link: '/credentials/apns' },
  { text: 'FCM', link: '/credentials/fcm' },
  { text: 'Huawei', link: '/credentials/huawei' },
  { text: 'Xiaomi', link: '/credentials/xiaomi' },
  { text: 'OPPO', link: '/credentials/oppo' },
  { text: 'vivo', link: '/credentials/vivo' },
  { text: 'Honor', link: '/credentials/honor' },
  { text: 'Meizu', link: '/credentials/meizu' },
  { text: 'Web Push', link: '/credentials/webpush' },
];

const operation = [
  { text: 'Production', link: '/production' },
  { text: 'Deploy', link: '/operate/deploy' },
  { text: 'Mail and SMS', link: '/operate/mail-and-sms' },
  { text: 'Upgrade', link: '/operate/upgrade' },
  { text: 'Backup and restore', link: '/backup' },
  { text: 'Sizing', link: '/operate/sizing' },
  { text: 'Growth', link: '/operate/growth' },
  { text: 'Console', link: '/console' },
  { text: 'People and approvals', link: '/operate/people' },
  { text: 'Single sign-on', link: '/operate/single-sign-on' },
  { text: 'Personal data', link: '/operate/personal-data' },
  { text: 'Rotate credentials', link: '/operate/credentials' },
  { text: 'Change CARILLON_SECRET', link: '/operate/secret' },
  { text: 'Redrive', link: '/operate/redrive' },
  { text: 'Alerts', link: '/operate/alerts' },
  { text: 'Tracing', link: '/operate/tracing' },
  { text: 'High availability', link: '/operate/high-availability' },
  { text: 'Backups with pgBackRest', link: '/operate/pgbackrest' },
  { text: 'Citus (experimental)', link: '/operate/distributed' },
  { text: 'Security', link: '/security' },
  { text: 'Performance', link: '/performance' },
  { text: 'Compared with others', link: '/rivals' },
];

const reference = [
  { text: 'HTTP API', link: '/reference/http-api' },
  { text: 'Admin HTTP API', link: '/reference/admin-http-api' },
  { text: 'Options of an app', link: '/reference/app-options' },
  { text: 'Error codes', link: '/reference/errors' },
  { text: 'Types of events', link: '/reference/webhook-events' },
  { text: 'Credentials', link: '/reference/credentials' },
  { text: 'Configuration', link: '/reference/configuration' },
  { text: 'Command line', link: '/reference/command-line' },
  { text: 'Metrics', link: '/reference/metrics' },
  { text: 'Device channel', link: '/reference/channel' },
  { text: 'Protocol', link: '/reference/protocol/' },
];

const development = [
  { text: 'Walks through the code', link: '/develop/walks' },
  { text: 'Architecture', link: '/develop/architecture' },
  { text: 'Decisions', link: '/develop/decisions' },
  { text: 'Recipes', link: '/develop/recipes' },
  { text: 'Testing and benchmarks', link: '/develop/testing' },
  { text: 'The api in detail', link: '/develop/api' },
  { text: 'The dispatcher in detail', link: '/develop/dispatcher' },
  { text: 'The queue in detail', link: '/develop/queue' },
  { text: 'Queries in detail', link: '/develop/queries' },
  { text: 'The device channel in detail', link: '/develop/device-channel' },
  { text: 'Accounts in detail', link: '/develop/accounts' },
  { text: 'Verification codes in detail', link: '/develop/verification-codes' },
  { text: 'Cloud functions in detail', link: '/develop/functions' },
  { text: 'Connectors in detail', link: '/develop/connectors' },
  { text: 'The HTTP/2 client in detail', link: '/develop/http2' },
  { text: 'Sandbox gateways in detail', link: '/develop/sandbox' },
  { text: 'The command line in detail', link: '/develop/command-line' },
  { text: 'The console in detail', link: '/develop/console' },
  { text: 'Import in detail', link: '/develop/import' },
  { text: 'The local service in detail', link: '/develop/local-service' },
  { text: 'Benchmarks in detail', link: '/develop/benchmarks' },
  { text: 'Mechanisms for speed', link: '/develop/speed' },
  { text: 'Glossary', link: '/glossary' },
];

const guideInChinese = [
  { text: '入门', link: '/zh/getting-started' },
  { text: '概念', link: '/zh/concepts' },
  { text: '发送推送', link: '/zh/sending' },
  { text: 'Web Push', link: '/zh/web-push' },
  { text: 'Webhook', link: '/zh/webhooks' },
  { text: '迁入', link: '/zh/moving-in' },
  { text: '邮件和短信', link: '/zh/operate/mail-and-sms' },
  { text: '单点登录', link: '/zh/operate/single-sign-on' },
];

const clientsInChinese = [
  { text: '概览', link: '/zh/clients/' },
  { text: 'iOS', link: '/zh/clients/ios' },
  { text: 'Android 与 FCM', link: '/zh/clients/android-fcm' },
  { text: '国内 Android', link: '/zh/clients/android-china' },
  { text: 'HarmonyOS', link: '/zh/clients/harmonyos' },
  { text: '网页', link: '/zh/clients/web' },
  { text: 'Flutter', link: '/zh/clients/flutter' },
  { text: 'React Native', link: '/zh/clients/react-native' },
  { text: '小程序与设备通道', link: '/zh/clients/mini-program' },
];

const vendorCredentialsInChinese = [
  { text: '概览', link: '/zh/credentials/' },
  { text: 'APNs', link: '/zh/credentials/apns' },
  { text: 'FCM', link: '/zh/credentials/fcm' },
  { text: '华为', link: '/zh/credentials/huawei' },
  { text: '小米', link: '/zh/credentials/xiaomi' },
  { text: 'OPPO', link: '/zh/credentials/oppo' },
  { text: 'vivo', link: '/zh/credentials/vivo' },
  { text: '荣耀', link: '/zh/credentials/honor' },
  { text: '魅族', link: '/zh/credentials/meizu' },
  { text: 'Web Push', link: '/zh/credentials/webpush' },
];

/** Resolves a link of a page; returns undefined where it stays inside docs/ or names a host. */
function pathOutside(page, href) {
  if (/^([a-z]+:|#|\/)/.test(href)) return undefined;
  const path = posix.normalize(posix.join('docs', posix.dirname(page), href));
  return path.startsWith('docs/') && !path.startsWith('docs/site') && !/\.json$/.test(path)
    ? undefined
    : path;
}

/**
 * Takes `<name>` and `{{name}}` in a page as text, as they are meant, and points links that leave
 * docs/ to the repository or turns them into text.
 */
function plainMarkdown(md) {
  md.set({ html: false });
  for (const rule of ['text', 'code_inline']) {
    const render = md.renderer.rules[rule];
    md.renderer.rules[rule] = (...args) => render(...args).replaceAll('{{', '&#123;&#123;');
  }
  md.core.ruler.push('links-to-code', ({ tokens, env }) => {
    for (const { children } of tokens) {
      for (const [at, token] of (children ?? []).entries()) {
        const path =
          token.type === 'link_open' && pathOutside(env.relativePath, token.attrGet('href'));
        if (!path) continue;
        if (repository) {
          token.attrSet('href', `${repository}/${path}`);
          continue;
        }
        token.type = 'html_inline';
        const close = children.slice(at).find(({ type }) => type === 'link_close');
        if (close) close.type = 'html_inline';
      }
    }
  });
}

export default defineConfig({
  title: 'Carillon',
  description:
    'Self-hosted push delivery with the account and verification API that mobile apps already speak',
  srcDir: 'pages',
  rewrites: (path) => path.replace(/README\.md$/, 'index.md'),
  cleanUrls: true,
  markdown: { config: plainMarkdown },
  themeConfig: { search: { provider: 'local' } },
  locales: {
    root: {
      label: 'English',
      lang: 'en',
      themeConfig: {
        sidebar: [
          { text: 'Guide', items: guide },
          { text: 'Add it to your app', items: clients },
          { text: 'Credentials', items: vendorCredentials },
          { text: 'Operation', items: operation },
          { text: 'Reference', items: reference },
          { text: 'Development', items: development },
        ],
      },
    },
    zh: {
      label: '中文',
      lang: 'zh-CN',
      description: '可自行部署的推送服务，兼容移动应用已在使用的账号与验证 API',
      themeConfig: {
        sidebar: [
          { text: '指南', items: guideInChinese },
          { text: '接入应用', items: clientsInChinese },
          { text: '凭证', items: vendorCredentialsInChinese },
          { text: '参考（英文）', items: reference },
        ],
        outline: { label: '本页目录' },
        docFooter: { prev: '上一页', next: '下一页' },
      },
    },
  },
});
