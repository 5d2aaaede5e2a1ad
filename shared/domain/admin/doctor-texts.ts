import { reasonText } from '../reasons.ts';
import { advised, type FindingText, type FindingTexts, fine } from './finding-text.ts';
import { reasonInChinese } from './reasons/meaning.ts';
import { upkeepTexts } from './upkeep-texts.ts';

const place = {
  en: '(profile {profile} of app {app}, at {at})',
  zh: '（应用 {app} 的配置 {profile}，时间 {at}）',
};

/** Texts about a gateway that does not answer, with the advice of each language. */
const silent = (adviceEn: string, adviceZh: string): FindingTexts => ({
  en: { detail: `{gateway} does not answer: {why} ${place.en}`, advice: adviceEn },
  zh: { detail: `{gateway} 没有响应：{why}${place.zh}`, advice: adviceZh },
});

const addKey: FindingText = {
  detail: '',
  advice: 'Add the key it was sealed with to CARILLON_SECRET, behind a comma.',
};
const addKeyZh = '请将加密时使用的密钥加到 CARILLON_SECRET 中，以逗号分隔。';

/** Texts of the findings of the checks that the api runs, by code; `{name}` is a parameter. */
export const doctorTexts = {
  ...upkeepTexts,
  processes: fine(
    '{apis} api and {dispatchers} dispatcher processes run',
    '有 {apis} 个 api 进程和 {dispatchers} 个 dispatcher 进程在运行',
  ),
  noDispatcher: {
    en: {
      detail: '{apis} api and {dispatchers} dispatcher processes run: nothing is sent',
      advice: 'Start a dispatcher: `carillon dispatcher`.',
    },
    zh: {
      detail: '有 {apis} 个 api 进程和 {dispatchers} 个 dispatcher 进程在运行：不会发送任何消息',
      advice: '请启动 dispatcher：`carillon dispatcher`。',
    },
  },
  severalVersions: {
    en: {
      detail: 'they have several versions: {versions}',
      advice: 'Finish the upgrade: restart those with the older one.',
    },
    zh: { detail: '各进程的版本不同：{versions}', advice: '请完成升级：重启旧版本的进程。' },
  },
  interrupted: {
    en: { detail: 'a check was interrupted: {why}', advice: 'Run it again.' },
    zh: { detail: '检查被中断：{why}', advice: '请重新检查。' },
  },
  secretsOpen: fine('{apps} apps and {profiles} profiles open', '{apps} 个应用和 {profiles} 个配置可以解密'),
  sealedApp: {
    en: { ...addKey, detail: 'app {app} does not open: {why}' },
    zh: { detail: '应用 {app} 无法解密：{why}', advice: addKeyZh },
  },
  sealedProfile: {
    en: { ...addKey, detail: 'profile {connector}/{profile} of app {app} does not open: {why}' },
    zh: { detail: '应用 {app} 的配置 {connector}/{profile} 无法解密：{why}', advice: addKeyZh },
  },
  tokensKept: {
    en: {
      detail:
        'push {push} of app {app}: {invalid} of {answers} answers of {gateway}, profile {profile}, call the token invalid ({reason}); devices kept: {devices}',
      advice:
        'Check the environment, topic or project of the profile. If the tokens really are invalid: `carillon devices delete-invalid {push} --app {app}`.',
    },
    zh: {
      detail:
        '应用 {app} 的推送 {push}：{gateway}（配置 {profile}）的 {answers} 个响应中有 {invalid} 个称令牌无效（{reason}）；保留的设备：{devices} 台',
      advice:
        '请检查该配置的环境、topic 或项目。如果令牌确实无效：`carillon devices delete-invalid {push} --app {app}`。',
    },
  },
  credentialsFine: fine('{profiles} profiles looked at', '已检查 {profiles} 个配置'),
  privateAddress: {
    en: {
      detail: '{member} of app {app} is a private address, to which the service does not connect',
      advice: 'List it in CARILLON_PRIVATE_HOSTS of every api and dispatcher, or correct it.',
    },
    zh: {
      detail: '应用 {app} 的 {member} 是私有地址，服务不会连接到该地址',
      advice: '请将其列入每个 api 和 dispatcher 的 CARILLON_PRIVATE_HOSTS，或更正该地址。',
    },
  },
  unknownConnector: {
    en: {
      detail: 'profile {connector}/{profile} of app {app}: no such connector',
      advice: 'Delete the profile.',
    },
    zh: { detail: '应用 {app} 的配置 {connector}/{profile}：没有此通道', advice: '请删除该配置。' },
  },
  credentialProblem: {
    en: {
      detail: 'profile {connector}/{profile} of app {app}: {why}',
      advice: 'Put the profile again: `{command}`.',
    },
    zh: {
      detail: '应用 {app} 的配置 {connector}/{profile}：{why}',
      advice: '请重新保存该配置：`{command}`。',
    },
  },
  gatewaysFine: fine('no gateway failed when it was asked last', '最近一次请求时没有网关出错'),
  gatewayFails: {
    en: {
      detail: `{gateway} takes nothing: {why} ${place.en}`,
      advice: 'The gateway itself fails: pushes wait and are tried again.',
    },
    zh: {
      detail: `{gateway} 目前不接受请求：{why}${place.zh}`,
      advice: '网关本身发生故障：推送会等待并重试。',
    },
  },
  gatewayWithoutName: silent(
    'Look at the DNS of this machine, and at the endpoint of the profile.',
    '请检查本机的 DNS，以及推送配置的 endpoint。',
  ),
  gatewayUntrusted: silent(
    'Its certificate is not trusted: look at the endpoint and `ca` of the profile, and at the clock of this machine.',
    '网关的证书不受信任：请检查推送配置的 endpoint 和 `ca`，以及本机时钟。',
  ),
  gatewayWithoutTunnel: silent(
    'The proxy opens no tunnel: look at the `proxy` of the profile.',
    '代理没有建立隧道：请检查推送配置的 `proxy`。',
  ),
  gatewayUnreached: silent(
    'Look at the firewall and the network of this machine, and at the endpoint of the profile.',
    '请检查本机的防火墙和网络，以及推送配置的 endpoint。',
  ),
  platformsFine: fine('{apps} apps looked at', '已检查 {apps} 个应用'),
  uncheckedPlatforms: {
    en: {
      detail: 'app {app} lets users in by platforms that are not checked: {platforms}',
      advice:
        'Put their credentials into the option authPlatforms, or set checkedPlatformsOnly to refuse them.',
    },
    zh: {
      detail: '应用 {app} 允许用户通过未经校验的平台登录：{platforms}',
      advice: '请在选项 authPlatforms 中填写这些平台的凭证，或设置 checkedPlatformsOnly 以拒绝它们。',
    },
  },
  restored: {
    en: {
      detail: 'the database was restored to {asOf}; {paused} pushes are still paused by that',
      advice:
        'Resume or cancel each: what was sent between that time and the restore is sent again by a resume.',
    },
    zh: {
      detail: '数据库已恢复到 {asOf}；仍有 {paused} 个推送因此暂停',
      advice: '请逐个恢复或取消：恢复会重发该时间与恢复操作之间已发送的内容。',
    },
  },
  serviceFrozen: advised(
    [
      'the whole service is frozen since {since} by {by}: no push is sent (reason: {reason})',
      'Release it: `carillon unfreeze`.',
    ],
    [
      '整个服务自 {since} 起被 {by} 冻结：不会发送任何推送（原因：{reason}）',
      '请解除冻结：`carillon unfreeze`。',
    ],
  ),
  appFrozen: advised(
    [
      'app {app} is frozen since {since} by {by}: its pushes wait (reason: {reason})',
      'Release it: `carillon unfreeze --app {app}`.',
    ],
    [
      '应用 {app} 自 {since} 起被 {by} 冻结：其推送正在等待（原因：{reason}）',
      '请解除冻结：`carillon unfreeze --app {app}`。',
    ],
  ),
  approvalsWait: advised(
    [
      'pushes of app {app} wait for the approval of a second person since {since}: {n}',
      'Approve or cancel them before they expire: `carillon pushes --app {app} --status paused`, then `carillon approve`.',
    ],
    [
      '应用 {app} 有推送自 {since} 起等待另一个人批准：{n} 个',
      '请在过期之前批准或取消：`carillon pushes --app {app} --status paused`，然后 `carillon approve`。',
    ],
  ),
} as const satisfies Record<string, FindingTexts>;

export type FindingCode = keyof typeof doctorTexts;

/** Texts of what a check looks at, by the name of the finding. */
export const subjectsZh: Readonly<Record<string, string>> = {
  processes: '进程',
  versions: '版本',
  database: '数据库',
  secrets: '密钥',
  'secret keys': '加密密钥',
  'credential rotations': '凭证轮换',
  credentials: '凭证',
  gateways: '网关',
  platforms: '第三方登录平台',
  restore: '数据库恢复',
  freeze: '冻结',
  approval: '批准',
  tokens: '令牌',
  'process clocks': '进程时钟',
  'open files': '打开的文件',
  duties: '后台任务',
  autovacuum: '自动清理',
  transactions: '事务',
  'replication slots': '复制槽',
  wraparound: '事务号',
};

export type FindingParams = Record<string, string | number>;

/** Writes a finding in a language. The parameter `why` is a stored reason. */
export function writeFinding(code: FindingCode, params: FindingParams, language: 'en' | 'zh'): FindingText {
  const { detail, advice } = doctorTexts[code][language];
  const fill = (text: string) =>
    text.replaceAll(/\{(\w+)\}/g, (_all, name: string) => {
      const value = String(params[name] ?? '');
      if (name !== 'why') return value;
      return language === 'zh' ? reasonInChinese(value) : reasonText(value);
    });
  return { detail: fill(detail), advice: fill(advice) };
}
