import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import type { Json, JsonObject } from '../../../shared/domain/json.ts';
import { isDomesticPhone, type Phone } from '../../../shared/domain/messages/phone.ts';
import { holdsLink, plainText } from '../../../shared/domain/messages/shown-text.ts';
import type { SmsType } from '../../../shared/domain/messages/sms.ts';
import { parseTemplate, type Template } from '../../../shared/template.ts';

/** The longest message: seven parts of a long SMS. */
const maxTextChars = 500;
const maxValueChars = 100;

/** Filled in for every message, whatever the caller sends (protocol/codes.md#templates). */
const ownVariables = new Set(['name', 'code', 'ttl', 'op', 'sign', 'template']);

/** What would turn a code into an advertisement or a trap, and what delimits signatures. */
const forbidden = /\p{Cc}|[【】]|:\/\/|www\./iu;

const defaults = {
  zh: read(
    '{{#if op}}您正在{{name}}进行{{op}}，{{else}}{{name}}：您的{{/if}}验证码是 {{code}}，{{ttl}} 分钟内有效，请勿告诉他人。',
  ),
  en: read(
    'Your {{name}} code{{#if op}} for {{op}}{{/if}} is {{code}}. It is valid for {{ttl}} minutes. Tell it to nobody.',
  ),
};

/** What the code is for, where the caller does not say. */
const operations: Record<SmsType, { zh: string; en: string }> = {
  general: { zh: '', en: '' },
  notification: { zh: '', en: '' },
  login: { zh: '登录', en: 'signing in' },
  verifyPhone: { zh: '手机号验证', en: 'verifying your number' },
  changePhone: { zh: '手机号更换', en: 'changing your number' },
  resetPassword: { zh: '密码重置', en: 'resetting your password' },
};

function read(text: string): Template {
  const reading = parseTemplate(text, { format: 'text' });
  if (!reading.ok) throw new Error(reading.hint);
  return reading.template;
}

export interface TextParameters {
  app: App;
  phone: Phone;
  type: SmsType;
  sign: string;
  ttlMinutes: number;
  name?: string | undefined;
  op?: string | undefined;
  /** A custom template and the values its caller sent. */
  custom?: { name: string; template: Template; values: JsonObject } | undefined;
}

/** The text of a message, beginning with its signature, and the variables that went into it. Throws 1, 111, 606. */
export function renderMessage(
  wording: TextParameters,
  code: string | undefined,
): { text: string; variables: Record<string, string> } {
  const { app, phone, type, sign, ttlMinutes, custom } = wording;
  const language = isDomesticPhone(phone) ? 'zh' : 'en';
  const values: Record<string, string> = {
    ...(custom ? ownValues(custom.template, custom.values) : {}),
    name: wording.name === undefined ? checked('name', app.name) : ofCaller('name', wording.name),
    op: wording.op === undefined ? operations[type][language] : ofCaller('op', wording.op),
    ttl: String(ttlMinutes),
    sign,
    template: custom?.name ?? '',
    ...(code === undefined ? {} : { code }),
  };
  const body = (custom?.template ?? defaults[language]).render(values);
  if (body === undefined || body.length > maxTextChars) throw refuse('smsTemplateFailed');
  return { text: language === 'zh' ? `【${sign}】${body}` : `[${sign}] ${body}`, variables: values };
}

/** The caller's values for the variables that the template names; others are not for it. */
function ownValues(template: Template, sent: JsonObject): Record<string, string> {
  const values: Record<string, string> = {};
  for (const name of template.variables) {
    if (ownVariables.has(name) || !Object.hasOwn(sent, name)) continue;
    values[name] = checked(name, textOf(name, sent[name]));
  }
  return values;
}

function textOf(name: string, value: Json | undefined): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw refuse('incorrectType', `${name}: expected a text or a number`);
}

function checked(name: string, value: string): string {
  if (value.length > maxValueChars)
    throw refuse('invalidParameter', `${name}: must be at most ${maxValueChars} characters`);
  if (forbidden.test(value))
    throw refuse('invalidParameter', `${name}: must not hold links, 【】 or control characters`);
  return value;
}

/** A text that the holder of an app key puts into a message to any number: no address of any form. Throws 1. */
function ofCaller(name: string, value: string): string {
  if (holdsLink(value)) throw refuse('invalidParameter', `${name}: must not hold links or addresses`);
  return checked(name, plainText(value));
}

/** Whether a text may stand in a message at all. */
export const isAllowedInMessages = (text: string): boolean => !forbidden.test(text);
