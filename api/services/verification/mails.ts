import type { OutboxMessage } from '../../../shared/db/tables/outbox.ts';
import type { LinkPurpose } from '../../../shared/db/tables/sign-in.ts';
import type { App, AppOptionsPatch, MailTemplate } from '../../../shared/domain/apps/app.ts';
import { mailName } from '../../../shared/domain/messages/sms.ts';
import { parseTemplate } from '../../../shared/template.ts';

/** Values for the template of a mail (protocol/users.md#mail-templates). */
export interface MailValues {
  appname: string;
  email: string;
  /** Name that the user chose. The mail shortens it, and omits it if it contains a link. */
  username: string;
  link: string;
}

/** Names of the mails in the option `mailTemplates`. */
const mailTemplateNames = {
  verifyEmail: ['verifyEmail', 'emailVerification'],
  resetPassword: ['resetPassword', 'passwordReset'],
} as const satisfies Record<LinkPurpose, readonly string[]>;

const mailNames: readonly string[] = Object.values(mailTemplateNames).flat();
const variables = new Set(['appname', 'email', 'username', 'link']);

/** Texts in both languages, because the language of the recipient is unknown. */
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

/** Renders a mail for the outbox from the app's template or the default template. */
export function writeMail(app: App, purpose: LinkPurpose, submitted: MailValues): OutboxMessage {
  const values = { ...submitted, username: mailName(submitted.username) };
  const custom = customTemplate(app, purpose);
  const fallback = defaults[purpose];
  const html = custom.html === undefined ? undefined : render(custom.html, 'html', values);
  // A name must not break the header line. The mail transport folds long lines.
  const subject = renderFirst([custom.subject, fallback.subject], values)
    .replace(/\s+/g, ' ')
    .trim();
  return {
    kind: 'mail',
    to: values.email,
    type: purpose,
    text: renderFirst([custom.text, fallback.text], values),
    link: values.link,
    mail: {
      fromName: app.name,
      subject,
      ...(html === undefined ? {} : { html }),
    },
  };
}

function customTemplate(app: App, purpose: LinkPurpose): MailTemplate {
  const { mailTemplates } = app.options;
  for (const name of mailTemplateNames[purpose]) {
    const template = Object.hasOwn(mailTemplates, name) ? mailTemplates[name] : undefined;
    if (template) return template;
  }
  return {};
}

/**
 * Renders one part. Returns undefined if this version refuses a template that an older version
 * accepted.
 */
function render(text: string, format: 'html' | 'text', values: MailValues): string | undefined {
  const parsed = parseTemplate(text, { format });
  return parsed.ok ? parsed.template.render({ ...values }) : undefined;
}

function renderFirst(texts: (string | undefined)[], values: MailValues): string {
  for (const text of texts) {
    const rendered = text === undefined ? undefined : render(text, 'text', values);
    if (rendered !== undefined) return rendered;
  }
  throw new Error('a mail template cannot be rendered');
}

/**
 * Returns a hint about an invalid mail template in the options. Returns undefined if all templates
 * are valid.
 */
export function mailTemplateHint({ mailTemplates = {} }: AppOptionsPatch): string | undefined {
  for (const [name, template] of Object.entries(mailTemplates)) {
    if (!mailNames.includes(name))
      return `mailTemplates: there is no mail of this name; expected ${mailNames.join(', ')}`;
    for (const part of ['subject', 'html', 'text'] as const) {
      const hint = partHint(template[part], part);
      if (hint) return `mailTemplates.${name}.${part}: ${hint}`;
    }
  }
  return undefined;
}

function partHint(text: string | undefined, part: 'subject' | 'html' | 'text'): string | undefined {
  if (text === undefined) return undefined;
  const parsed = parseTemplate(text, { format: part === 'html' ? 'html' : 'text' });
  if (!parsed.ok) return parsed.hint;
  const unknown = [...parsed.template.variables].find((name) => !variables.has(name));
  if (unknown) return `there is no variable ${unknown}; expected ${[...variables].join(', ')}`;
  if (part !== 'subject' && !parsed.template.variables.has('link')) return 'must contain {{link}}';
  return undefined;
}
