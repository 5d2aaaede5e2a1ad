import type { Role } from '../../api/session.tsx';
import type { IconName } from '../../kit/icon.tsx';

/** Page that the navigation, the search and the shortcuts open. To add a page, add an entry. */
interface PageEntry<To extends string> {
  to: To;
  /** Key of the link's text. */
  title: string;
  /** Guide about the page, by its path below `/docs`. */
  doc: string;
  icon?: IconName;
  /** Key that opens the page after `g`. */
  key?: string;
  /** Lowest role that may open the page. */
  role?: Role;
  /** True if the page concerns all apps, so that a token limited to some apps cannot open it. */
  isForAllApps?: boolean;
  /** Additional search words, such as the page's name in the console of LeanCloud. */
  words?: readonly string[];
  /** True if only the search and a button on another page link to the page. */
  isUnlisted?: boolean;
}

const pageEntry = <To extends string>(one: PageEntry<To>): PageEntry<To> => one;

/** Pages of an app. */
export const appPages = [
  pageEntry({
    to: '/apps/$appId',
    title: 'nav.overview',
    doc: 'getting-started',
    icon: 'overview',
    key: 'o',
    words: ['统计', 'statistics', 'dashboard'],
  }),
  pageEntry({
    to: '/apps/$appId/pushes',
    title: 'nav.pushes',
    doc: 'console',
    icon: 'pushes',
    key: 'p',
    words: ['推送记录', 'push records', 'history', 'notifications'],
  }),
  pageEntry({
    to: '/apps/$appId/pushes/new',
    title: 'compose.heading',
    doc: 'sending',
    role: 'sender',
    isUnlisted: true,
    words: ['在线发送', '新建推送', '创建推送', 'compose', 'send', 'online push'],
  }),
  pageEntry({
    to: '/apps/$appId/pushes/compare',
    title: 'compare.title',
    doc: 'console',
    isUnlisted: true,
    words: ['对比推送', 'compare', 'diff', 'regressions'],
  }),
  pageEntry({
    to: '/apps/$appId/pushes/scheduled',
    title: 'scheduled.title',
    doc: 'sending',
    isUnlisted: true,
    words: ['定时推送任务', 'schedule', 'push_time'],
  }),
  pageEntry({
    to: '/apps/$appId/pushes/undelivered',
    title: 'undelivered.title',
    doc: 'operate/redrive',
    isUnlisted: true,
    words: ['重发', '补发', 'redrive', 'resend', 'retry', 'failed', 'expired', 'capped'],
  }),
  pageEntry({
    to: '/apps/$appId/pushes/recurring',
    title: 'recurring.title',
    doc: 'sending',
    isUnlisted: true,
    words: ['周期推送', '循环推送', 'cron', 'recurring', 'repeat', 'every day'],
  }),
  pageEntry({
    to: '/apps/$appId/pushes/live-activities',
    title: 'liveActivity.title',
    doc: 'live-activities',
    isUnlisted: true,
    words: ['实时活动', '灵动岛', 'live activity', 'ActivityKit', 'broadcast', 'channels'],
  }),
  pageEntry({
    to: '/apps/$appId/devices',
    title: 'nav.devices',
    doc: 'concepts',
    icon: 'devices',
    key: 'd',
    words: ['设备', 'installations', '_Installation', 'tokens'],
  }),
  pageEntry({
    to: '/apps/$appId/users',
    title: 'nav.users',
    doc: 'operate/personal-data',
    icon: 'users',
    words: ['_User', '用户管理', 'accounts', 'lock', 'sessions'],
  }),
  pageEntry({
    to: '/apps/$appId/profiles',
    title: 'nav.profiles',
    doc: 'operate/credentials',
    icon: 'gateways',
    words: [
      '推送证书',
      '混合推送',
      '厂商',
      'credentials',
      'certificates',
      'push settings',
      'mixpush',
      'gateways',
    ],
  }),
  pageEntry({
    to: '/apps/$appId/quotas',
    title: 'nav.quotas',
    doc: 'sending',
    icon: 'quotas',
    words: ['配额', '限额', 'quota', 'forecast', 'limits', 'daily cap'],
  }),
  pageEntry({
    to: '/apps/$appId/reports',
    title: 'nav.reports',
    doc: 'opens',
    icon: 'reports',
    words: [
      '报表',
      '趋势',
      '到达率',
      '打开率',
      'reports',
      'trends',
      'history',
      'open rate',
      'growth',
    ],
  }),
  pageEntry({
    to: '/apps/$appId/usage',
    title: 'nav.usage',
    doc: 'console',
    icon: 'reports',
    words: ['用量', '账单', '费用', 'billing', 'fees', 'usage', 'CSV'],
  }),
  pageEntry({
    to: '/apps/$appId/messages',
    title: 'nav.messages',
    doc: 'operate/mail-and-sms',
    icon: 'messages',
    words: ['短信', '邮件', 'SMS', 'mail', 'outbox', 'templates', 'signatures'],
  }),
  pageEntry({
    to: '/apps/$appId/webhooks',
    title: 'nav.webhooks',
    doc: 'webhooks',
    icon: 'webhooks',
    role: 'operator',
    words: [
      '回调',
      '事件',
      'events',
      'callbacks',
      'notifications',
      'Slack',
      '飞书',
      '钉钉',
      '企业微信',
    ],
  }),
  pageEntry({
    to: '/apps/$appId/settings',
    title: 'nav.settings',
    doc: 'console',
    icon: 'settings',
    words: ['推送设置', '应用 Keys', '安全中心', '选项', 'options', 'app keys', 'master key'],
  }),
  pageEntry({
    to: '/apps/$appId/move-in',
    title: 'moveIn.title',
    doc: 'moving-in',
    isUnlisted: true,
    words: ['迁移', '导入', '数据导入', 'migration', 'import', 'check list', 'export'],
  }),
];

/** Pages of the service. */
export const servicePages = [
  pageEntry({
    to: '/',
    title: 'nav.apps',
    doc: 'console',
    icon: 'apps',
    words: ['应用列表', 'all apps'],
  }),
  pageEntry({
    to: '/operating',
    title: 'nav.operating',
    doc: 'operate/alerts',
    icon: 'operations',
    key: 's',
    words: ['熔断', '队列', 'breakers', 'queues', 'gateways'],
  }),
  pageEntry({
    to: '/webhooks',
    title: 'webhooks.ofService',
    doc: 'webhooks',
    icon: 'webhooks',
    role: 'operator',
    isForAllApps: true,
    words: ['回调', '事件', 'events', 'callbacks', 'Slack', '飞书', '钉钉', '企业微信'],
  }),
  pageEntry({
    to: '/secret',
    title: 'secret.title',
    doc: 'operate/secret',
    role: 'owner',
    isForAllApps: true,
    isUnlisted: true,
    words: ['密钥轮换', 'CARILLON_SECRET', 'encryption', 'rotation', 'rotate', 'old key'],
  }),
  pageEntry({
    to: '/go-live',
    title: 'goLive.title',
    doc: 'production',
    role: 'operator',
    isForAllApps: true,
    isUnlisted: true,
    words: ['上线', '正式环境', 'production', 'checklist', 'doctor', 'backups', 'go live'],
  }),
  pageEntry({
    to: '/people',
    title: 'nav.people',
    doc: 'operate/people',
    icon: 'members',
    role: 'owner',
    isForAllApps: true,
    words: ['协作', '权限', '会话', 'tokens', 'sessions', 'roles', 'collaborators', 'login link'],
  }),
  pageEntry({
    to: '/audit',
    title: 'nav.audit',
    doc: 'operate/people',
    icon: 'audit',
    role: 'owner',
    isForAllApps: true,
    words: ['操作日志', 'audit log', 'changes', 'history'],
  }),
  pageEntry({
    to: '/docs',
    title: 'guides.title',
    doc: 'console',
    icon: 'help',
    words: ['帮助', '指南', '手册', 'docs', 'guides', 'manual', 'help'],
  }),
];

/** True if a person may open a page. */
export function isOpenTo(
  { role, isForAllApps }: Pick<PageEntry<string>, 'role' | 'isForAllApps'>,
  { apps, may }: { apps: readonly string[] | null; may: (role: Role) => boolean },
): boolean {
  return (role === undefined || may(role)) && (isForAllApps !== true || apps === null);
}
