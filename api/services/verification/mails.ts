import type { OutboxMessage } from '../../../shared/db/tables/messages/outbox.ts';
import type { LinkPurpose } from '../../../shared/db/tables/users/link-tokens.ts';
import type { App, AppOptionsPatch, MailTemplate } from '../../../shared/domain/apps/app.ts';
import { shownName } from '../../../shared/domain/messages/shown-text.ts';
import { parseTemplate } from '../../../shared/template.ts';

/** What a mail is made of (protocol/users.md#mail-templates). */
export interface MailValues {
  appname: string;
  email: string;
  /** As the user chose it: shortened, and left out where it holds a link. */
  username: string;
  link: string;
}

/** Under which names an app may set its own (option `mailTemplates`). */
export const mailTemplateNames = {
  verifyEmail: ['verifyEmail', 'emailVerification'],
  resetPassword: ['resetPassword', 'passwordReset'],
} as const satisfies Record<LinkPurpose, readonly string[]>;

const knownNames: readonly string[] = Object.values(mailTemplateNames).flat();
const variables = new Set(['appname', 'email', 'username', 'link']);

/** In both languages: who gets a mail did not send the request. */
const defaults: Record<LinkPurpose, { subject: string; text: string }> = {
  verifyEmail: {
    subject: '{{appname}}: 请验证您的邮箱 / Please confirm your e-mail address',
    text: `{{#if username}}{{username}}，{{/if}}您好：

请打开下面的链接，确认这是您在 {{appname}} 使用的邮箱。链接一周内有效，只能使用一次。

Hello{{#if username}} {{username}}{{/if}},

please open this link to confirm that this is your e-mail address at {{appname}}. It is valid for one week and works once.

{{link}}

如果您没有注册过，请忽略这封邮件。If you did not sign up, please ignore this mail.
`,
  },
  resetPassword: {
    subject: '{{appname}}: 重置密码 / Reset your password',
    text: `{{#if username}}{{username}}，{{/if}}您好：

请打开下面的链接，为您的 {{appname}} 账号设置新密码。链接一周内有效，只能使用一次。

Hello{{#if username}} {{username}}{{/if}},

please open this link to set a new password for your {{appname}} account. It is valid for one week and works once.

{{link}}

如果您没有要求重置密码，请忽略这封邮件，密码不会改变。If you did not ask for this, please ignore this mail: your password stays as it is.
`,
  },
};

/** The mail with the app's own words where it has some, as the outbox takes it. */
export function writeMail(app: App, purpose: LinkPurpose, sent: MailValues): OutboxMessage {
  const values = { ...sent, username: shownName(sent.username) };
  const own = ownTemplate(app, purpose);
  const usual = defaults[purpose];
  const html = own.html === undefined ? undefined : fill(own.html, 'html', values);
  // What names people choose must not end a header line; the transport folds the rest.
  const subject = fillFirst([own.subject, usual.subject], values).replace(/\s+/g, ' ').trim();
  return {
    kind: 'mail',
    to: values.email,
    type: purpose,
    text: fillFirst([own.text, usual.text], values),
    link: values.link,
    mail: {
      fromName: app.name,
      subject,
      ...(html === undefined ? {} : { html }),
    },
  };
}

function ownTemplate(app: App, purpose: LinkPurpose): MailTemplate {
  const { mailTemplates } = app.options;
  for (const name of mailTemplateNames[purpose]) {
    const own = Object.hasOwn(mailTemplates, name) ? mailTemplates[name] : undefined;
    if (own) return own;
  }
  return {};
}

/** Undefined for a template that was set before a rule which it breaks now: the mail leaves without it. */
function fill(text: string, format: 'html' | 'text', values: MailValues): string | undefined {
  const reading = parseTemplate(text, { format });
  return reading.ok ? reading.template.render({ ...values }) : undefined;
}

function fillFirst(texts: (string | undefined)[], values: MailValues): string {
  for (const text of texts) {
    const filled = text === undefined ? undefined : fill(text, 'text', values);
    if (filled !== undefined) return filled;
  }
  throw new Error('a mail template cannot be filled in');
}

/** What is wrong with the mail templates that an operator sets: a sentence, or undefined. */
export function mailTemplateHint({ mailTemplates = {} }: AppOptionsPatch): string | undefined {
  for (const [name, template] of Object.entries(mailTemplates)) {
    if (!knownNames.includes(name))
      return `mailTemplates: there is no mail called so; expected ${knownNames.join(', ')}`;
    for (const part of ['subject', 'html', 'text'] as const) {
      const problem = partHint(template[part], part);
      if (problem) return `mailTemplates.${name}.${part}: ${problem}`;
    }
  }
  return undefined;
}

function partHint(text: string | undefined, part: 'subject' | 'html' | 'text'): string | undefined {
  if (text === undefined) return undefined;
  const reading = parseTemplate(text, { format: part === 'html' ? 'html' : 'text' });
  if (!reading.ok) return reading.hint;
  const unknown = [...reading.template.variables].find((name) => !variables.has(name));
  if (unknown) return `there is no variable ${unknown}; expected ${[...variables].join(', ')}`;
  if (part !== 'subject' && !reading.template.variables.has('link')) return 'must hold {{link}}';
  return undefined;
}
