import type { ErrorName, Refusal } from './errors.ts';

/**
 * Chinese texts of the errors of accounts and messages that users may see (protocol/errors.md#languages: localised by
 * `Accept-Language`, English by default). Apps show them unchanged. Errors for programmers stay English.
 */
const texts: Partial<Record<ErrorName, string>> = {
  internal: '服务器内部错误。',
  notForClients: '该功能未对客户端开放。',
  invalidEmail: '邮箱地址无效。',
  invalidPhone: '手机号码无效。',
  duplicate: '该值已被占用，不能重复。',
  thresholdExceeded: '已超过应用的使用限额。',
  insufficientBalance: '账户余额不足。',
  usernameMissing: '没有提供用户名，或者用户名为空。',
  passwordMissing: '没有提供密码，或者密码为空。',
  usernameTaken: '用户名已经被占用。',
  emailTaken: '邮箱地址已经被占用。',
  emailMissing: '没有提供邮箱地址。',
  emailUnknown: '没有使用该邮箱地址的用户。',
  sessionNeeded: '请先登录：只有用户本人才能修改自己的资料。',
  accountLinked: '该第三方账号已经绑定到其他用户。',
  passwordMismatch: '用户名和密码不匹配。',
  userNotFound: '用户不存在。',
  phoneMissing: '没有提供手机号码。',
  phoneUnknown: '没有使用该手机号码的用户。',
  phoneTaken: '手机号码已经被占用。',
  phoneUnverified: '手机号码还没有验证。',
  emailUnverified: '邮箱地址还没有验证。',
  invalidUsername: '用户名无效，不能是空白。',
  invalidPassword: '密码无效，不能是空白。',
  accountLocked: '登录失败次数过多，请稍后再试，或者重设密码。',
  linkedIdMissing: '缺少第三方账号的标识。',
  invalidLinkedSession: '第三方账号的授权信息无效。',
  invalidWeixinSession: '微信的授权信息无效。',
  forbiddenReadByAcl: '没有读取该对象的权限。',
  forbiddenWriteByAcl: '没有修改该对象的权限。',
  loginRefused: '登录被应用拒绝。',
  conflict: '数据刚刚被修改，请重试。',
  tooManyRequests: '请求过于频繁，请稍后再试。',
  unavailable: '服务暂时不可用，请稍后再试。',
  misconfigured: '服务配置有误，请联系运维人员查看日志。',
  invalidSmsSignature: '短信签名无效。',
  smsTooSoon: '发送短信过于频繁，请 10 秒后再试。',
  smsTooFrequent: '发送短信过于频繁，请稍后再试。',
  invalidSmsCode: '验证码无效。',
  smsTemplateNotFound: '短信模板不存在。',
  smsTemplateNotVerified: '短信模板尚未通过审核。',
  validateTokenMissing: '请先完成图形验证码。',
  wrongCaptcha: '图形验证码错误或者已经过期。',
  emailVerificationOff: '应用没有开启邮箱验证功能。',
  tooManyMails: '向同一个邮箱地址发送的邮件过多，请稍后再试。',
};

/** Returns the public text of a refusal in a language; a custom text is not translated. */
export function messageIn(language: 'en' | 'zh', refusal: Refusal): string {
  const isOfTable = language === 'zh' && !refusal.hasOwnText;
  return (isOfTable ? texts[refusal.kind] : undefined) ?? refusal.message;
}
