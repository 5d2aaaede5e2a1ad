/** Steps of moving an app in that the service can judge, in order. `{name}` is a parameter. */
export const moveInTexts = {
  imported: {
    en: '{n} devices and {users} users are here.',
    zh: '已有 {n} 台设备和 {users} 个用户。',
  },
  nothingHere: {
    en: 'No device and no user is here. Import the export of the app.',
    zh: '还没有设备和用户，请导入应用的导出数据。',
  },
  refused: {
    en: 'The last import refused {n} records: its report says which and why. Correct them, and import again.',
    zh: '上次导入拒绝了 {n} 条记录，导入报告中有对应的行和原因。修正后请再次导入。',
  },
  unfinished: {
    en: 'The last import did not finish. Run the same command again.',
    zh: '上次导入没有完成，请再次运行同一命令。',
  },
  keys: {
    en: 'Installed apps send the app key, and servers the master key: compare both with those of the old service.',
    zh: '已安装的应用使用 App Key，服务端使用 Master Key，请与原服务中的值核对。',
  },
  profiles: { en: 'Every device has a profile that serves it.', zh: '每台设备都有可用的推送配置。' },
  missingProfiles: {
    en: '{n} devices have no profile that serves them.',
    zh: '有 {n} 台设备没有可用的推送配置。',
  },
  hybridPush: {
    en: 'hybridPush is off: Android devices with a vendor get pushes only while the app is open.',
    zh: '混合推送（hybridPush）未开启：Android 厂商设备只有在应用打开时才能收到推送。',
  },
  mail: {
    en: '{n} users have a mail address: see that templates and SMTP_URL are set, where the app sends mails.',
    zh: '有 {n} 个用户带邮箱：如果应用会发邮件，请确认邮件模板和 SMTP_URL 已设置。',
  },
  sms: {
    en: '{n} users have a phone number: see that templates, signatures and SMS_WEBHOOK_URL are set, where the app sends codes.',
    zh: '有 {n} 个用户带手机号：如果应用会发验证码，请确认短信模板、签名和 SMS_WEBHOOK_URL 已设置。',
  },
  functions: { en: 'Cloud functions and hooks run at {url}.', zh: '云函数和 Hook 运行在 {url}。' },
  noFunctions: {
    en: 'The app has no functionsUrl. Set it, where the app has cloud functions or hooks.',
    zh: '应用没有设置 functionsUrl。如果有云函数或 Hook，请设置。',
  },
  address: {
    en: 'Installed apps must reach this service at {url}, the name that they call already.',
    zh: '已安装的应用必须能通过 {url} 访问本服务，即它们现在调用的域名。',
  },
  noAddress: {
    en: 'This service is at {url}, which installed apps cannot call. Set PUBLIC_URL to https:// and the name that they call.',
    zh: '本服务地址为 {url}，已安装的应用无法访问。请把 PUBLIC_URL 设置为 https:// 加它们调用的域名。',
  },
  trial: {
    en: 'Give one device the new address first, and send it a push.',
    zh: '先让一台设备使用新地址，并向它发送一条推送。',
  },
  arrived: {
    en: '{n} moved devices have called this service since the import.',
    zh: '导入后，已有 {n} 台迁移的设备访问过本服务。',
  },
  noneArrived: {
    en: 'No moved device has called this service since the import.',
    zh: '导入后，还没有迁移的设备访问过本服务。',
  },
} as const;

export type MoveInCode = keyof typeof moveInTexts;

/** Writes the text of a step in a language. */
export function writeMoveInText(
  code: MoveInCode,
  params: Readonly<Record<string, string | number>>,
  language: 'en' | 'zh',
): string {
  return moveInTexts[code][language].replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name] ?? '';
    return typeof value === 'number' ? value.toLocaleString('en') : value;
  });
}
