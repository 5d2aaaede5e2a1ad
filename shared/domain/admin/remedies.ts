import type { Outcome } from '../outcome.ts';

/** What an operator can do about recipients that a push did not reach. */
export interface Remedy {
  code: RemedyCode;
  en: string;
  zh: string;
}

const texts = {
  invalidToken: {
    en: 'The token is no longer valid: the app was removed, or its token changed. The installation is deleted; it comes back when the app is opened and registers.',
    zh: '设备标识已失效：应用被卸载，或标识已更换。该设备记录会被删除；用户再次打开应用并注册后恢复。',
  },
  wrongApp: {
    en: 'The token belongs to another app or environment: compare topic, team, package name and `prod` with the build of the app.',
    zh: '设备标识属于其他应用或环境：请核对 topic、team、包名以及 `prod` 与应用构建是否一致。',
  },
  noProfile: {
    en: 'No push profile serves these devices: add one for this connector, or correct `deviceProfile` and topic of the devices.',
    zh: '没有推送配置可用于这些设备：请为该通道添加配置，或修正设备的 `deviceProfile` 和 topic。',
  },
  noAddress: {
    en: 'The installation has no address for this gateway: the app has to save its token or installationId.',
    zh: '设备记录缺少该通道的地址：应用需要保存设备标识或 installationId。',
  },
  credentials: {
    en: 'The gateway refuses the credentials or the rights of the app: check the profile and the app on the site of the vendor. The record of the push has the details.',
    zh: '网关拒绝了凭证或应用权限：请检查推送配置以及厂商后台中的应用。推送记录中有详细说明。',
  },
  message: {
    en: 'The gateway does not take this message: correct the content, then send it again. A dry run shows what each gateway would get.',
    zh: '网关不接受这条消息：请修改内容后重新发送。预演可以显示各网关将收到的内容。',
  },
  tooLarge: {
    en: 'The message is too large for the gateway: shorten the text or the data.',
    zh: '消息超过了网关的大小限制：请缩短文本或数据。',
  },
  appCap: {
    en: 'The daily cap of the app is used up: raise `dailyRecipientCap`, or send after midnight in UTC.',
    zh: '应用的每日接收上限已用完：请提高 `dailyRecipientCap`，或在 UTC 零点之后发送。',
  },
  gatewayQuota: {
    en: 'The day quota of the gateway is used up: ask the vendor for more, use a message class with a larger quota, or send after midnight in China.',
    zh: '网关的当日配额已用完：请向厂商申请更多配额，使用配额更大的消息类别，或在北京时间零点之后发送。',
  },
  tooFast: {
    en: 'The gateway limits the rate: set `flow_control`, or wait and send again to those who failed.',
    zh: '网关限制了发送速率：请设置 `flow_control`，或稍后向失败的设备重发。',
  },
  unavailable: {
    en: 'The gateway did not answer or was out of order until the push expired: look at the breakers, then send again to those who failed.',
    zh: '在推送过期前网关没有响应或发生故障：请查看熔断器，然后向失败的设备重发。',
  },
  unreachable: {
    en: 'The gateway cannot be reached from here, or is out of order: look at the firewall, DNS and proxy of this machine, and at the endpoint of the profile.',
    zh: '无法从此处连接网关，或网关发生故障：请检查本机的防火墙、DNS 和代理，以及推送配置的 endpoint。',
  },
  unanswered: {
    en: 'A request got no answer, so the message may have arrived. The option `unknownOutcome` decides whether such recipients are sent to again.',
    zh: '请求没有得到响应，消息可能已经送达。选项 `unknownOutcome` 决定是否向这些设备重发。',
  },
  expired: {
    en: 'The push expired before it was sent: give it more time, a higher rate, or send it earlier.',
    zh: '推送在发送之前已过期：请延长有效期、提高速率，或提前发送。',
  },
  cancelled: {
    en: 'The push was cancelled. Send a new one to reach these devices.',
    zh: '推送已被取消。如需送达这些设备，请重新发送。',
  },
  dropped: {
    en: 'The gateway has no such message, or the device is gone: nothing has to be done.',
    zh: '网关没有此类消息，或设备已不存在：无需处理。',
  },
  userSetting: {
    en: 'The user switched notifications off, or does not use the device: nothing can be done here.',
    zh: '用户关闭了通知，或不再使用该设备：此处无法处理。',
  },
  vendorCode: {
    en: 'Look the reason up in the documents of the vendor, with the message id of the push.',
    zh: '请凭推送的消息 id 在厂商文档中查询该原因。',
  },
} as const satisfies Record<string, { en: string; zh: string }>;

export type RemedyCode = keyof typeof texts;

/** Codes of all remedies. */
export const remedyCodes: readonly string[] = Object.keys(texts);

/**
 * Remedies of the reasons of failed recipients, the first pattern that matches; the reasons come from the response
 * tables.
 */
const byReason: readonly (readonly [RegExp, RemedyCode])[] = [
  [/\bprofile\b|\bno credentials\b|not available on this server/i, 'noProfile'],
  [/has no (deviceToken|installationId|registration)/i, 'noAddress'],
  [/^cancelled$/i, 'cancelled'],
  [/too_?large|PayloadTooLarge|content_too_long|extras_too_long|too_many_extras/i, 'tooLarge'],
  [
    /DeviceTokenNotForTopic|sender_id_mismatch|BadTopic|TopicDisallowed|MissingTopic|package_name|another_app/i,
    'wrongApp',
  ],
  [/quota|too_many_today|_limit$|penalised/i, 'gatewayQuota'],
  [/too_?fast|TooMany|frequen|rate_|_rate|busy|overload|flow_control|http_429|too_many_topic/i, 'tooFast'],
  [
    /notifications_off|inactive|not_subscribed|unsubscribed|illegal_device|unknown_user_status/i,
    'userSetting',
  ],
  [
    /auth|certificate|provider ?token|environment|key|secret|sign|permission|forbidden|denied|restricted|disabled|blacklist|app_?id|closed|_right|illegal_app|timestamp|categor|classification|template|service_account|not_created|http_40[1347]|review|jwt|token_expired|_in_region|high_priority|test_user|country/i,
    'credentials',
  ],
  [/^unknown$|unreadable|no answer/i, 'unanswered'],
  [
    /unavailable|internal|shutdown|timeout|connection|goaway|refused_stream|ECONN|ENOTFOUND|ETIMEDOUT|system_error|database_error|http_5|try_again|unreachable|gateway/i,
    'unavailable',
  ],
  [
    /^bad|bad_|message|payload|argument|parameter|missing|invalid|BadCollapseId|BadPriority|BadExpiration|PushType|Duplicate|sensitive|picture|image|title|encoding|method|version|content|too_long|callback|extras|ttl|pass_through|http_400|_url|reg_ids|registration_tokens|one_token|not_allowed|not_supported|looks_like/i,
    'message',
  ],
];

/** Returns what can be done about recipients with an outcome and a reason. */
export function remedyOf(outcome: Outcome, reason: string): Remedy {
  return remedyFor(codeOf(outcome, reason));
}

/** Returns the remedy of a code. */
export const remedyFor = (code: RemedyCode): Remedy => ({ code, ...texts[code] });

function codeOf(outcome: Outcome, reason: string): RemedyCode {
  switch (outcome) {
    case 'invalid_token':
      return /DeviceTokenNotForTopic|sender_id_mismatch/.test(reason) ? 'wrongApp' : 'invalidToken';
    case 'expired':
      return 'expired';
    case 'capped':
      return /cap\b|daily/i.test(reason) ? 'appCap' : 'gatewayQuota';
    case 'dropped':
      return reason === 'cancelled' ? 'cancelled' : 'dropped';
    default:
      return byReason.find(([pattern]) => pattern.test(reason))?.[1] ?? 'vendorCode';
  }
}
