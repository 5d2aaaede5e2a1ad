import { detailOf } from '../errors/details.ts';
import { chineseBrandOf, displayName, isConnectorId } from '../labels.ts';
import { reasonText } from '../reasons.ts';
import { reasonInChinese } from './reasons/meaning.ts';

/** Text in a language of the console, as a code with parameters. */
export type Text = { code: TextCode; params: TextParams };
export type TextParams = { [name: string]: string | number | null | Text };
export type TextLanguage = 'en' | 'zh';

/**
 * Texts of the explanation of a push at a device. `{name}` is a parameter; a part in brackets is
 * left out where its parameter is null. `connector`, `state` and `why`, a stored reason, have names
 * of their own in each language.
 */
export const traceTexts = {
  handedOver: {
    en: 'It was handed over to {connector}[ (profile {profile})][ at {at}].',
    zh: '已交给{connector}[（配置 {profile}）][，时间 {at}]。',
  },
  inboxWaiting: {
    en: 'Its message waits in the inbox until {until}: the device has not acknowledged it yet.',
    zh: '消息在收件箱中等待，直到 {until}：设备尚未确认。',
  },
  inboxAcknowledged: { en: 'The device got it and acknowledged it.', zh: '设备已收到并确认。' },
  inboxExpired: {
    en: 'The device did not acknowledge its message before it expired at {until}.',
    zh: '消息于 {until} 过期，设备在此之前没有确认。',
  },
  inboxGone: {
    en: 'Its message was put into the inbox and is gone: acknowledged, or expired at {until}.',
    zh: '消息曾放入收件箱，现已不在：已被确认，或已于 {until} 过期。',
  },
  inboxGoneOrDisplaced: {
    en: 'Its message was put into the inbox and is gone: acknowledged, expired at {until}, or dropped for newer ones, as it happened on {devices} devices (100 messages wait at most).',
    zh: '消息曾放入收件箱，现已不在：已被确认、已于 {until} 过期，或因更新的消息而被丢弃（共 {devices} 台设备如此；每台设备最多保留 100 条）。',
  },
  repeatedOnce: {
    en: 'An earlier request got no answer, so it may have arrived more than once.',
    zh: '此前有一次请求没有得到响应，消息可能不止一次送达。',
  },
  repeatedTimes: {
    en: '{times} earlier requests got no answer, so it may have arrived more than once.',
    zh: '此前有 {times} 次请求没有得到响应，消息可能不止一次送达。',
  },
  deleted: { en: 'The installation was deleted since.', zh: '此后该设备记录已被删除。' },
  invalidToken: {
    en: '{connector}[ (profile {profile})] said that the address of this device is dead ({why})[ at {at}].',
    zh: '{connector}[（配置 {profile}）]表示该设备的地址已失效[，时间 {at}]：{why}。',
  },
  expired: {
    en: 'The push expired before it was sent to this device ({why}).',
    zh: '推送在发送到该设备之前已过期：{why}。',
  },
  capped: { en: 'It was not sent: {why}.', zh: '没有发送：{why}。' },
  dropped: { en: 'It was dropped and not sent: {why}.', zh: '已丢弃，没有发送：{why}。' },
  refused: {
    en: '{connector}[ (profile {profile})] did not take it ({why})[ at {at}].',
    zh: '{connector}[（配置 {profile}）]没有接受[，时间 {at}]：{why}。',
  },
  unsendable: {
    en: 'It could not be sent by {connector}[ (profile {profile})]: {why}.',
    zh: '无法通过{connector}[（配置 {profile}）]发送：{why}。',
  },
  pendingCancelled: {
    en: 'It was matched and goes by {connector}[ (profile {profile})]: the push was cancelled.',
    zh: '已匹配，通过{connector}[（配置 {profile}）]发送：推送已被取消。',
  },
  pendingTriedOnce: {
    en: 'It was matched and goes by {connector}[ (profile {profile})]: it was tried once and will be tried again.',
    zh: '已匹配，通过{connector}[（配置 {profile}）]发送：已尝试一次，将再次尝试。',
  },
  pendingTried: {
    en: 'It was matched and goes by {connector}[ (profile {profile})]: it was tried {times} times and will be tried again.',
    zh: '已匹配，通过{connector}[（配置 {profile}）]发送：已尝试 {times} 次，将再次尝试。',
  },
  pendingWaiting: {
    en: 'It was matched and goes by {connector}[ (profile {profile})]: the push is {state} and this device has not had its turn or its answer yet.',
    zh: '已匹配，通过{connector}[（配置 {profile}）]发送：推送状态为{state}，还没有轮到该设备，或尚无响应。',
  },
  gatewayRefuses: {
    en: '{connector} takes nothing: {why} (at {at}).',
    zh: '{connector}目前不接受请求，时间 {at}：{why}。',
  },
  gatewaySilent: {
    en: '{connector} does not answer: {why} (at {at}).',
    zh: '{connector}没有响应，时间 {at}：{why}。',
  },
  lastTry: { en: 'The last try: {why}.', zh: '上一次尝试：{why}。' },
  cancelledBefore: {
    en: 'The push was cancelled before this device was matched.',
    zh: '推送在匹配到该设备之前已被取消。',
  },
  failedWhole: { en: 'The push failed as a whole: {why}.', zh: '整个推送失败：{why}。' },
  notMatched: { en: 'It was not matched: {because}.', zh: '没有匹配：{because}。' },
  willNotMatch: { en: 'It will not be matched: {because}.', zh: '将不会匹配：{because}。' },
  unmetCondition: { en: 'the condition {clause} does not hold for it', zh: '该设备不满足条件 {clause}' },
  unlisted: { en: 'it is not among the {clause}', zh: '该设备不在列出的设备之中（{clause}）' },
  invalidDevice: { en: 'the installation is not valid', zh: '该设备记录无效' },
  staleDevice: {
    en: 'it was saved last at {at}, more than {days} days ago',
    zh: '最后一次保存于 {at}，已超过 {days} 天',
  },
  notYet: {
    en: 'The push is {state} and has not come to this device: as things are now it will be matched, by {connector}[ (profile {profile})].',
    zh: '推送状态为{state}，还没有处理到该设备：按目前情况会匹配，通过{connector}[（配置 {profile}）]发送。',
  },
  notYetUnsendable: {
    en: 'The push is {state} and has not come to this device: as things are now it will be matched, but cannot be sent by {connector}[ (profile {profile})]: {why}.',
    zh: '推送状态为{state}，还没有处理到该设备：按目前情况会匹配，但无法通过{connector}[（配置 {profile}）]发送：{why}。',
  },
  localStart: {
    en: 'It goes to this device at {at}: {time} in the time zone {zone}.',
    zh: '将于 {at} 发送到该设备：时区 {zone} 的 {time}。',
  },
  localStartPassed: {
    en: 'Its time came at {at}: {time} in the time zone {zone}. A device whose zone changed since gets it with the next start, within three hours.',
    zh: '发送时间为 {at}：时区 {zone} 的 {time}，已经过去。此后更改了时区的设备，会在三小时内的下一次发送中收到。',
  },
  deviceCapReached: {
    en: 'It has had its {cap} pushes of today, so it would be counted capped.',
    zh: '该设备今天已收到 {cap} 条推送，会计为 capped。',
  },
  quietWaits: {
    en: 'It waits until {at}, the end of the quiet hours of the device ({hours}).',
    zh: '等到 {at} 发送，即该设备免打扰时段（{hours}）的结束时间。',
  },
  quietWaited: {
    en: 'It waited until {at}, the end of the quiet hours of the device ({hours}).',
    zh: '已等到 {at}，即该设备免打扰时段（{hours}）的结束时间。',
  },
  quietWillWait: {
    en: 'It would wait until {at}, the end of the quiet hours of the device ({hours}).',
    zh: '届时会等到 {at}，即该设备免打扰时段（{hours}）的结束时间。',
  },
  languageChosen: {
    en: 'Its text is the translation {language}[; its locale is {locale}].',
    zh: '其内容为 {language} 的翻译[；该设备的 locale 为 {locale}]。',
  },
  languageOfData: {
    en: 'Its text is that of data: no translation fits its locale[ {locale}].',
    zh: '其内容为 data 本身：没有适合该设备 locale[（{locale}）]的翻译。',
  },
  variableField: {
    en: 'The variable {name} in its text is its field {field}.',
    zh: '其内容中的变量 {name} 取自该设备的字段 {field}。',
  },
  variableDefault: {
    en: 'The variable {name} in its text is the default: it has no {field}.',
    zh: '其内容中的变量 {name} 为默认值：该设备没有字段 {field}。',
  },
  registeredLater: {
    en: 'It was registered at {at}, after the push was made; it would be matched now.',
    zh: '该设备在推送创建之后于 {at} 注册；现在会匹配。',
  },
  wouldMatchNow: {
    en: 'It was not matched when the push was planned, but would be now.',
    zh: '规划推送时没有匹配，但现在会匹配。',
  },
  savedLast: { en: 'It was saved last at {at}.', zh: '最后一次保存于 {at}。' },
} as const satisfies Record<string, Record<TextLanguage, string>>;

export type TextCode = keyof typeof traceTexts;

const chineseStates: Record<string, string> = {
  scheduled: '已排期',
  queued: '排队中',
  sending: '发送中',
  paused: '已暂停',
  done: '已完成',
  failed: '失败',
  cancelled: '已取消',
};

/** Values in place of a parameter that is null. */
const missing: Record<string, Record<TextLanguage, string>> = {
  why: { en: 'the reason is no longer kept', zh: '原因已不再保留' },
  at: { en: 'an unknown time', zh: '未知时间' },
};

/** Returns parameters as replies show them: `why` as the text of its reason. */
export const shownParams = <P extends TextParams>(params: P): P =>
  typeof params.why === 'string' ? { ...params, why: reasonText(params.why) } : params;

/** Writes a text in a language. */
export const writeText = ({ code, params }: Text, language: TextLanguage): string =>
  fillTemplate(traceTexts[code][language], params, language);

/** Writes the parameters into a template. */
export function fillTemplate(template: string, params: TextParams, language: TextLanguage): string {
  const kept = template.replaceAll(/\[([^\]]*)\]/g, (_part: string, inner: string) => {
    const name = /\{(\w+)\}/.exec(inner)?.[1] ?? '';
    return (params[name] ?? null) === null ? '' : inner;
  });
  const text = kept.replaceAll(/\{(\w+)\}([).）。]?)/g, (_all: string, name: string, end: string) => {
    const value = valueIn(params, name, language);
    // A reason that is a sentence has no full stop within another one.
    return `${end && name === 'why' ? value.replace(/[.。]$/, '') : value}${end}`;
  });
  // Brands such as vivo keep their first letter.
  return template.startsWith('{connector}') ? text.replace(/^the /, 'The ') : text;
}

function valueIn(params: TextParams, name: string, language: TextLanguage): string {
  const value = params[name] ?? null;
  if (value === null) return missing[name]?.[language] ?? '';
  if (typeof value === 'object') return writeText(value, language);
  const text = String(value);
  if (name === 'connector') return nameOf(text, language);
  if (name === 'why')
    return language === 'en' ? reasonText(text) : (detailOf(reasonText(text))?.zh ?? reasonInChinese(text));
  return name === 'state' && language === 'zh' ? (chineseStates[text] ?? text) : text;
}

function nameOf(connector: string, language: TextLanguage): string {
  if (language === 'zh' && isConnectorId(connector)) return chineseBrandOf(connector);
  return connector === 'channel' ? `the ${displayName(connector)}` : displayName(connector);
}
