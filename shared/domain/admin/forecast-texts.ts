import type { JsonObject } from '../json.ts';
import { fillTemplate, shownParams, type TextLanguage } from './trace-texts.ts';

/** Texts of a dry run: limits that would refuse, shorten or delay a push, its pace, and warnings. `{name}` is a parameter. */
export const forecastTexts = {
  bodyTooLarge: {
    en: 'The body has {bytes} bytes and would be refused: it must be under {limit}.',
    zh: '请求体有 {bytes} 字节，会被拒绝：必须小于 {limit}。',
  },
  refused: { en: 'The push would be refused: {why}', zh: '推送会被拒绝：{why}' },
  tooManyScheduled: {
    en: '{waiting} scheduled pushes are pending, and a {plan} app may have {limit}: it would be refused.',
    zh: '已有 {waiting} 个定时推送在等待，{plan} 应用最多 {limit} 个：推送会被拒绝。',
  },
  needsApproval: {
    en: 'The app wants an approval of pushes to more than {above} devices: the push waits until another person approves it.',
    zh: '该应用要求对超过 {above} 台设备的推送进行批准：推送会等待另一个人批准。',
  },
  hybridOff: {
    en: 'hybridPush is off: {devices} devices of vendors get this push by the own channel only, although the app has credentials for their gateways.',
    zh: '混合推送（hybridPush）未开启：应用已有相应通道的凭证，但 {devices} 台厂商设备只能通过自有通道接收该推送。',
  },
  profileLimit: {
    en: 'The profile {profile} of {id} serves at most {devices} devices per push: {why}.',
    zh: '{id} 的配置 {profile} 每次推送最多 {devices} 台设备：{why}。',
  },
  dailyCap: {
    en: 'The daily recipient cap of {cap} leaves {left} on {day}: {over} devices would be counted capped.',
    zh: '每日接收上限 {cap} 在 {day} 还剩 {left}：{over} 台设备会计为 capped。',
  },
  deviceCap: {
    en: '{over} of these devices have had their {cap} pushes of today: they would be counted capped.',
    zh: '其中 {over} 台设备今天已收到 {cap} 条推送：会计为 capped。',
  },
  quietWaiting: {
    en: '{devices} devices are within their quiet hours ({hours}) then: they wait for the end, the last ones until {until}.',
    zh: '届时 {devices} 台设备处于免打扰时段（{hours}）：推送会等到时段结束，最晚到 {until}。',
  },
  quietExpired: {
    en: 'The push expires before the quiet hours ({hours}) of {devices} devices end: they would be counted expired.',
    zh: '推送在 {devices} 台设备的免打扰时段（{hours}）结束之前过期：会计为 expired。',
  },
  slowFlowControl: {
    en: 'flow_control {asked} counts as {used}, the least there is.',
    zh: 'flow_control {asked} 按最小值 {used} 计算。',
  },
  expiredBefore: {
    en: 'It expires at {until}, before it is sent: every device would be counted expired.',
    zh: '推送在发送之前就于 {until} 过期：所有设备都会计为 expired。',
  },
  expiredDuring: {
    en: 'It expires at {until}, before all are sent to: those who wait then would be counted expired.',
    zh: '推送在全部发送完之前于 {until} 过期：届时仍在等待的设备会计为 expired。',
  },
  unrenderedIn: {
    en: '{language}: {why}',
    zh: '翻译 {language}：{why}',
  },
  localTimePassed: {
    en: 'The time of {devices} devices passed more than three hours ago in their time zones: they would be counted expired.',
    zh: '{devices} 台设备所在时区的发送时间已过去三小时以上：会计为 expired。',
  },
  tooManyKinds: {
    en: 'The devices are of too many kinds: the smallest are missing by connector.',
    zh: '设备种类过多：按通道统计时省略了数量最少的种类。',
  },
  breakerOpen: {
    en: 'The breaker of {id}, profile {profile}, is {state}: its devices wait until the gateway answers.',
    zh: '{id} 的配置 {profile} 的熔断器处于 {state} 状态：这些设备会等到网关恢复应答。',
  },
  noIndex: {
    en: 'No index serves this condition: the database reads about {rows} installations to find {devices}.',
    zh: '没有索引可用于该条件：数据库要读取约 {rows} 台设备才能找到 {devices} 台。',
  },
  paceAsked: {
    en: '{perSecond} recipients per second were asked for, if the gateways allow it.',
    zh: '指定的速率为每秒 {perSecond} 台设备，以网关允许为准。',
  },
  paceUnknown: {
    en: 'No pace was asked for; no large push of this app was finished lately.',
    zh: '没有指定速率；该应用近期没有完成过大规模推送。',
  },
  pacePast: {
    en: 'No pace was asked for; the last large push of this app went at {perSecond} recipients per second, which would take {seconds} s here.',
    zh: '没有指定速率；该应用上一次大规模推送为每秒 {perSecond} 台设备，按此需要 {seconds} 秒。',
  },
  unserved: { en: '{why} ({n} devices)', zh: '{why}（{n} 台设备）' },
  unrendered: { en: '{why}', zh: '{why}' },
} as const satisfies Record<string, Record<TextLanguage, string>>;

export type ForecastCode = keyof typeof forecastTexts;

/** Text of a dry run as a code with parameters. */
export interface ForecastText {
  code: ForecastCode;
  params: Record<string, string | number>;
}

export const textOf = (code: ForecastCode, params: ForecastText['params'] = {}): ForecastText => ({
  code,
  params,
});

/** Writes a text in a language. */
export const writeForecast = ({ code, params }: ForecastText, language: TextLanguage): string =>
  fillTemplate(forecastTexts[code][language], params, language);

/** Returns a text as replies show it. */
export const shownText = (text: ForecastText): JsonObject => ({
  code: text.code,
  params: shownParams(text.params),
  text: writeForecast(text, 'en'),
  zh: writeForecast(text, 'zh'),
});
