import { existsSync } from 'node:fs';

const docs = new URL('../../', import.meta.url);

/** Path below docs/ without `.md`, with its title in both languages. */
type Page = readonly [page: string, english: string, chinese: string];

/** Groups of pages by task, as in docs/README.md. */
const groups: [english: string, chinese: string, pages: Page[]][] = [
  [
    'Try it',
    '试用',
    [
      ['getting-started', 'Getting started', '入门'],
      ['concepts', 'Concepts', '概念'],
    ],
  ],
  [
    'First push',
    '第一条推送',
    [
      ['first-push', 'First push to your phone or browser', '发到手机或浏览器的第一条推送'],
      ['web-push', 'Web Push', 'Web Push'],
    ],
  ],
  [
    'Add it to your app',
    '接入应用',
    [
      ['clients/README', 'Overview', '概览'],
      ['clients/ios', 'iOS', 'iOS'],
      ['clients/android-fcm', 'Android with FCM', 'Android 与 FCM'],
      ['clients/android-china', 'Android in China', '国内 Android'],
      ['clients/harmonyos', 'HarmonyOS', 'HarmonyOS'],
      ['clients/web', 'Web', '网页'],
      ['clients/flutter', 'Flutter', 'Flutter'],
      ['clients/react-native', 'React Native', 'React Native'],
      ['clients/mini-program', 'Mini program and device channel', '小程序与设备通道'],
    ],
  ],
  [
    'Credentials',
    '推送凭证',
    [
      ['credentials/README', 'Overview', '概览'],
      ['credentials/apns', 'APNs', 'APNs'],
      ['credentials/fcm', 'FCM', 'FCM'],
      ['credentials/huawei', 'Huawei', '华为'],
      ['credentials/xiaomi', 'Xiaomi', '小米'],
      ['credentials/oppo', 'OPPO', 'OPPO'],
      ['credentials/vivo', 'vivo', 'vivo'],
      ['credentials/honor', 'Honor', '荣耀'],
      ['credentials/meizu', 'Meizu', '魅族'],
      ['credentials/webpush', 'Web Push', 'Web Push'],
      ['operate/credentials', 'Rotate credentials', '更换凭证'],
    ],
  ],
  [
    'Send',
    '发送',
    [
      ['sending', 'Sending', '发送推送'],
      ['opens', 'Deliveries and opens', '送达和打开'],
      ['console', 'Console', '控制台'],
    ],
  ],
  ['Live Activities', '实时活动', [['live-activities', 'Live Activities', '实时活动']]],
  [
    'Accounts and SMS',
    '账号和短信',
    [
      ['accounts', 'Accounts', '账号'],
      ['operate/mail-and-sms', 'Mail and SMS', '邮件和短信'],
      ['operate/personal-data', 'Personal data', '个人数据'],
    ],
  ],
  ['Cloud functions', '云函数', [['cloud-functions', 'Cloud functions', '云函数']]],
  ['Events', '事件', [['webhooks', 'Webhooks', 'Webhook']]],
  ['Leave LeanCloud', '离开 LeanCloud', [['moving-in', 'Leave LeanCloud', '离开 LeanCloud']]],
  [
    'Go live',
    '上线',
    [
      ['go-live', 'Checklist', '上线清单'],
      ['production', 'Production', '生产环境'],
      ['operate/deploy', 'Deploy', '部署'],
      ['operate/sizing', 'Sizing', '容量'],
      ['security', 'Security', '安全'],
    ],
  ],
  [
    'Operate',
    '运维',
    [
      ['operate/alerts', 'Alerts', '告警'],
      ['operate/upgrade', 'Upgrade', '升级'],
      ['backup', 'Back up and restore', '备份和恢复'],
      ['operate/pgbackrest', 'Backups with pgBackRest', '用 pgBackRest 备份'],
      ['operate/high-availability', 'High availability', '高可用'],
      ['operate/people', 'People, audit, approvals', '成员、操作日志和审批'],
      ['operate/single-sign-on', 'Single sign-on', '单点登录'],
      ['operate/redrive', 'Redrive', '重发'],
      ['operate/secret', 'Change CARILLON_SECRET', '更换 CARILLON_SECRET'],
      ['operate/tracing', 'Tracing', '链路追踪'],
      ['operate/growth', 'Growth of the tables', '表的增长'],
      ['operate/distributed', 'Citus (experimental)', 'Citus（实验性）'],
    ],
  ],
  [
    'Troubleshooting and FAQ',
    '故障排查和常见问题',
    [
      ['troubleshooting', 'Troubleshooting', '故障排查'],
      ['faq', 'Questions and answers', '常见问题'],
      ['limitations', 'Known limitations', '已知限制'],
    ],
  ],
  [
    'Reference',
    '参考',
    [
      ['reference/http-api', 'HTTP API', 'HTTP API'],
      ['reference/admin-http-api', 'Admin HTTP API', '运维 HTTP API'],
      ['reference/app-options', 'Options of an app', '应用选项'],
      ['reference/errors', 'Error codes', '错误码'],
      ['reference/webhook-events', 'Types of events', '事件类型'],
      ['reference/credentials', 'Credentials', '凭证的字段'],
      ['reference/configuration', 'Configuration', '环境变量'],
      ['reference/command-line', 'Command line', '命令行'],
      ['reference/metrics', 'Metrics', '指标'],
      ['reference/channel', 'Device channel', '设备通道'],
      ['reference/protocol/README', 'Protocol', '协议'],
      ['performance', 'Performance', '性能'],
      ['rivals', 'Compared with others', '与其他项目比较'],
    ],
  ],
  [
    'Contribute',
    '参与开发',
    [
      ['develop/walks', 'Walks through the code', '代码导览'],
      ['develop/architecture', 'Architecture', '架构'],
      ['develop/decisions', 'Decisions', '设计决定'],
      ['develop/recipes', 'Recipes', '常见改动'],
      ['develop/testing', 'Testing and benchmarks', '测试和基准'],
      ['develop/api', 'The api in detail', 'api 详解'],
      ['develop/dispatcher', 'The dispatcher in detail', 'dispatcher 详解'],
      ['develop/queue', 'The queue in detail', '队列详解'],
      ['develop/queries', 'Queries in detail', '查询详解'],
      ['develop/device-channel', 'The device channel in detail', '设备通道详解'],
      ['develop/accounts', 'Accounts in detail', '账号详解'],
      ['develop/verification-codes', 'Verification codes in detail', '验证码详解'],
      ['develop/functions', 'Cloud functions in detail', '云函数详解'],
      ['develop/connectors', 'Connectors in detail', '连接器详解'],
      ['develop/http2', 'The HTTP/2 client in detail', 'HTTP/2 客户端详解'],
      ['develop/sandbox', 'Sandbox gateways in detail', '沙箱通道详解'],
      ['develop/command-line', 'The command line in detail', '命令行详解'],
      ['develop/console', 'The console in detail', '控制台详解'],
      ['develop/import', 'Import in detail', '导入详解'],
      ['develop/local-service', 'The local service in detail', '本机服务详解'],
      ['develop/benchmarks', 'Benchmarks in detail', '基准详解'],
      ['develop/speed', 'Mechanisms for speed', '性能机制'],
      ['glossary', 'Glossary', '术语表'],
    ],
  ],
];

const exists = (page: string) => existsSync(new URL(`${page}.md`, docs));

const linkTo = (page: string) => `/${page.replace(/README$/, '')}`;

/** Sidebar in English. */
export const english = () =>
  groups.map(([text, , pages]) => ({
    text,
    items: pages.map(([page, title]) => ({ text: title, link: linkTo(page) })),
  }));

/** Sidebar in Chinese. Pages without a translation lead to the English page. */
export const chinese = () =>
  groups.map(([, text, pages]) => ({
    text,
    items: pages.map(([page, , title]) =>
      exists(`zh/${page}`)
        ? { text: title, link: linkTo(`zh/${page}`) }
        : { text: `${title}（英文）`, link: linkTo(page) },
    ),
  }));
