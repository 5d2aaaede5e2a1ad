import type { Outcome } from '../outcome.ts';
import { readReason } from '../reasons.ts';
import { reasonsByRemedy } from './reasons/remedy-codes.ts';

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
    en: 'The gateway refuses the credentials: check the profile and the app on the site of the vendor. The record of the push has the details.',
    zh: '网关拒绝了凭证：请检查推送配置以及厂商后台中的应用。推送记录中有详细说明。',
  },
  clock: {
    en: 'The gateway finds the time of the request or of its token wrong: check the clock of this machine.',
    zh: '网关认为请求或令牌的时间不正确：请检查本机的时钟。',
  },
  right: {
    en: 'The app lacks a right at the vendor, which the reason names: apply for it on the site of the vendor, or send without what needs it. The credentials are accepted.',
    zh: '应用在厂商处缺少原因中所述的权限：请在厂商后台申请，或去掉需要该权限的内容后发送。凭证本身有效。',
  },
  category: {
    en: 'The gateway does not accept the category, classification, template or message channel: name one that the app has on the site of the vendor.',
    zh: '网关不接受消息的类别、分类、模板或通知渠道：请使用应用在厂商后台已开通的类别。',
  },
  barred: {
    en: 'The vendor has closed push for the app, or for the address of this machine: ask the vendor why. The credentials are accepted.',
    zh: '厂商已停止该应用（或本机地址）的推送：请向厂商了解原因。凭证本身有效。',
  },
  review: {
    en: 'The vendor reviews the app, the message or its image first: wait for the result on the site of the vendor, then send again.',
    zh: '厂商需要先审核应用、消息或图片：请在厂商后台等待审核结果，然后重新发送。',
  },
  testDevice: {
    en: 'The gateway takes this message as a test: add the device to the test devices on the site of the vendor, within their limits, or send it as a usual message. The credentials are accepted.',
    zh: '网关将该消息视为测试消息：请在厂商后台将该设备加入测试设备（数量有限），或作为正式消息发送。凭证本身有效。',
  },
  region: {
    en: 'The gateway does not serve this region: check the region of the profile and the country of the app on the site of the vendor, or reach these devices by another gateway.',
    zh: '网关不为该地区服务：请检查推送配置的地区以及厂商后台中应用的国家或地区，或通过其他通道发送给这些设备。',
  },
  hybridPush: {
    en: 'Switch `hybridPush` on in the settings of the app: without it, devices with a vendor get pushes by the own channel only.',
    zh: '请在应用设置中开启 `hybridPush`：未开启时，厂商设备只能通过自有通道接收推送。',
  },
  privateAddress: {
    en: 'The address of the profile is private: correct `endpoint` or `authEndpoint`, or list the address in `CARILLON_PRIVATE_HOSTS`.',
    zh: '推送配置中的地址是内网地址：请修正 `endpoint` 或 `authEndpoint`，或将该地址加入 `CARILLON_PRIVATE_HOSTS`。',
  },
  receipts: {
    en: 'The gateway refuses the address or the parameter of the receipts: check `PUBLIC_URL` and the receipts of the app on the site of the vendor.',
    zh: '网关拒绝了回执地址或回执参数：请检查 `PUBLIC_URL` 以及厂商后台中的回执设置。',
  },
  request: {
    en: 'The gateway does not understand the request: check that `endpoint` and proxy of the profile lead to the gateway. If they do, report the reason to the project.',
    zh: '网关无法理解该请求：请检查推送配置的 `endpoint` 和代理是否指向该网关。如果无误，请将原因报告给本项目。',
  },
  deviceCap: {
    en: 'The device has had its pushes of the day: raise `devicePushesPerDay` or `device_cap`, send after midnight in UTC, or send the push as `transactional`.',
    zh: '该设备当日的推送数已达上限：请提高 `devicePushesPerDay` 或 `device_cap`，在 UTC 零点之后发送，或以 `transactional` 类别发送。',
  },
  quietHours: {
    en: 'The push expires before the quiet hours of the device end: give it a longer lifetime, or send it earlier.',
    zh: '推送在设备的免打扰时段结束之前过期：请延长有效期，或提前发送。',
  },
  localTime: {
    en: 'The time had passed in the time zone of the device: choose a later time, or send to these devices at once.',
    zh: '设备所在时区的发送时间已过：请选择更晚的时间，或立即向这些设备发送。',
  },
  ownService: {
    en: 'The database of this service did not answer: look at Operating and at the database, then send again to those who failed.',
    zh: '本服务的数据库没有响应：请查看“运行状态”页面和数据库，然后向失败的设备重发。',
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

/** Returns what can be done about recipients with an outcome and a stored reason. */
export function remedyOf(outcome: Outcome, reason: string): Remedy {
  return remedyFor(codeOf(outcome, reason));
}

/** Returns the remedy of a code. */
export const remedyFor = (code: RemedyCode): Remedy => ({ code, ...texts[code] });

const remedies = new Map<string, RemedyCode>(
  Object.entries(reasonsByRemedy).flatMap(([remedy, reasons]) =>
    isRemedyCode(remedy) ? reasons.map((reason) => [reason, remedy] as const) : [],
  ),
);

function isRemedyCode(code: string): code is RemedyCode {
  return Object.hasOwn(texts, code);
}

/** Statuses of HTTP that say more than that a request was refused. */
const byStatus: Readonly<Record<string, RemedyCode>> = {
  '401': 'credentials',
  '403': 'credentials',
  '407': 'unreachable',
  '413': 'tooLarge',
  '429': 'tooFast',
};

/**
 * Returns the remedy of the cause that a stored reason names; `vendorCode` for a reason that is not
 * in the catalogue.
 */
function ofReason(reason: string): RemedyCode {
  const { code, params } = readReason(reason);
  if (params.why !== undefined) return ofReason(params.why);
  const ofStatus = code === 'httpRefusal' ? byStatus[params.status ?? ''] : undefined;
  return ofStatus ?? remedies.get(code) ?? 'vendorCode';
}

function codeOf(outcome: Outcome, reason: string): RemedyCode {
  const found = ofReason(reason);
  switch (outcome) {
    case 'invalid_token':
      return found === 'wrongApp' ? 'wrongApp' : 'invalidToken';
    case 'expired':
      return found === 'vendorCode' ? 'expired' : found;
    case 'capped':
      return found === 'vendorCode' ? 'gatewayQuota' : found;
    case 'dropped':
      return found === 'cancelled' ? 'cancelled' : 'dropped';
    default:
      return found;
  }
}
