import { createHash, randomBytes } from 'node:crypto';
import { dayMs, hourMs } from '../../../shared/clock.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import {
  findLink,
  insertLink,
  type Link,
  type LinkPurpose,
  spendLink,
} from '../../../shared/db/tables/sign-in.ts';
import { type Budget, takeBudget } from '../../../shared/db/tables/sms.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { mailboxOf, type User } from '../../../shared/domain/users/user.ts';
import { enqueueMessage } from '../../../shared/queue/message-jobs.ts';
import type { ApiDeps } from '../deps.ts';
import { escapeHtml, htmlPage, type Language, type Page } from '../server/html-page.ts';
import { ipAddressKey } from '../sms/budgets.ts';
import { writeMail } from './mails.ts';

/** Validity of a link: one week (protocol/codes.md#validity). */
const linkMs = 7 * 24 * 3_600_000;

/** Maximum number of mails of one purpose to one mailbox per day. */
const mailsPerDay = 10;
/** Maximum number of mails that one network address may cause per hour. */
const mailsPerIpAddressAndHour = 500;

const tokenForm = /^[\w-]{32}$/;

const paths: Record<LinkPurpose, string> = {
  verifyEmail: '/1.1/verifyEmail',
  resetPassword: '/1.1/resetPassword',
};

/** Hashes a token. A token has 192 random bits, so the hash needs no key. */
const digestOf = (token: string) => createHash('sha256').update(token).digest();

/** Recipient of a mail. */
export type MailRecipient = Pick<User, 'id' | 'email' | 'username'>;

/** Mail with a link to send. */
interface MailRequest {
  purpose: LinkPurpose;
  /**
   * Network address that requested the mail. Undefined for servers of the app and for operators.
   */
  ipAddress: string | undefined;
  /** True if no user may get the mail and the caller must not find that out. */
  isDryRun?: boolean;
}

/** Creates, finds and spends links in mails (protocol/codes.md#e-mail-and-password-reset). */
export class MailLinks {
  readonly #deps: Pick<ApiDeps, 'db' | 'vault' | 'queue' | 'clock' | 'config'>;

  constructor(deps: Pick<ApiDeps, 'db' | 'vault' | 'queue' | 'clock' | 'config'>) {
    this.#deps = deps;
  }

  /**
   * Mails a link to a user as part of `tx`. Every mail counts against the budgets of its mailbox
   * and of the network address. Returns false, and sends nothing, if a budget is used up. A dry run
   * counts, does the same work and rolls it back. The URL is built only from PUBLIC_URL
   * (protocol/known-problems.md#links-from-headers).
   */
  async send(tx: Handle, app: App, user: MailRecipient, request: MailRequest): Promise<boolean> {
    if (user.email === null) return false;
    for (const budget of this.#budgets(app, user.email, request))
      if (!(await takeBudget(tx, budget, new Date(this.#deps.clock.now())))) return false;
    const { isDryRun = false } = request;
    if (isDryRun) await tx.query('SAVEPOINT dry_run');
    await this.#write(tx, app, { ...user, email: user.email }, request.purpose);
    if (isDryRun) await tx.query('ROLLBACK TO SAVEPOINT dry_run');
    return true;
  }

  async #write(
    tx: Handle,
    app: App,
    { id, email, username }: MailRecipient & { email: string },
    purpose: LinkPurpose,
  ): Promise<void> {
    const { clock, config } = this.#deps;
    const token = randomBytes(24).toString('base64url');
    const expiresAt = new Date(clock.now() + linkMs);
    const link: Link = { appId: app.appId, purpose, userId: id, email };
    await insertLink(tx, link, { digest: digestOf(token), expiresAt });
    const values = { appname: app.name, email, username };
    const url = `${config.publicUrl}${paths[purpose]}/${token}`;
    await enqueueMessage(
      this.#deps,
      tx,
      app.appId,
      writeMail(app, purpose, { ...values, link: url }),
    );
  }

  #budgets({ appId }: App, email: string, { purpose, ipAddress }: MailRequest): Budget[] {
    const mailbox = this.#deps.vault.derive(`mail ${purpose} ${mailboxOf(email)}`).slice(0, 22);
    const ofMailbox = {
      appId,
      scope: 'mail',
      key: mailbox,
      limit: mailsPerDay,
      windowMs: dayMs,
    } as const;
    if (ipAddress === undefined) return [ofMailbox];
    const key = ipAddressKey(this.#deps, ipAddress);
    const limit = mailsPerIpAddressAndHour;
    return [ofMailbox, { appId, scope: 'mailAddress', key, limit, windowMs: hourMs }];
  }

  /** Finds a link. Returns undefined if the token is forged, used or expired. */
  async find(purpose: LinkPurpose, token: string): Promise<Link | undefined> {
    return tokenForm.test(token) ? findLink(this.#deps.db, purpose, this.#key(token)) : undefined;
  }

  /**
   * Spends a link. If calls are concurrent, only one of them gets the link. Returns undefined as
   * `find`.
   */
  async spend(tx: Handle, purpose: LinkPurpose, token: string): Promise<Link | undefined> {
    return tokenForm.test(token) ? spendLink(tx, purpose, this.#key(token)) : undefined;
  }

  #key(token: string) {
    return { digest: digestOf(token), now: new Date(this.#deps.clock.now()) };
  }
}

interface PageText {
  title: string;
  text: string;
}

const texts = {
  verified: {
    en: { title: 'E-mail address confirmed', text: 'Thank you. You can close this page.' },
    zh: { title: '邮箱验证成功', text: '谢谢，您可以关闭此页面。' },
  },
  alreadyVerified: {
    en: {
      title: 'E-mail address already confirmed',
      text: 'Nothing more is to be done. You can close this page.',
    },
    zh: { title: '邮箱已验证', text: '无需再次操作，您可以关闭此页面。' },
  },
  invalidLink: {
    en: {
      title: 'This link does not work',
      text:
        'It was used already, has expired, or is incomplete. Please ask for a new mail in ' +
        'the app.',
    },
    zh: { title: '链接无效', text: '链接已被使用、已过期或不完整，请在应用中重新发送邮件。' },
  },
  reset: {
    en: { title: 'Password changed', text: 'You can sign in with your new password now.' },
    zh: { title: '密码已重置', text: '现在可以使用新密码登录了。' },
  },
} satisfies Record<string, Record<Language, PageText>>;

const form = {
  en: {
    title: 'Set a new password',
    password: 'New password',
    repeat: 'New password again',
    submit: 'Set password',
    mismatch: 'The two passwords are not the same.',
    invalid: 'Please enter a password that is not blank and not longer than 1024 bytes.',
  },
  zh: {
    title: '设置新密码',
    password: '新密码',
    repeat: '再次输入新密码',
    submit: '设置密码',
    mismatch: '两次输入的密码不一致。',
    invalid: '请输入密码，不能为空白，长度不超过 1024 字节。',
  },
};

export const verifiedPage = (language: Language): Page => notice(200, language, texts.verified);
export const alreadyVerifiedPage = (language: Language): Page =>
  notice(200, language, texts.alreadyVerified);
export const resetPage = (language: Language): Page => notice(200, language, texts.reset);
export const invalidLinkPage = (language: Language): Page =>
  notice(404, language, texts.invalidLink);

/** Returns the page for a link whose path is malformed. */
export const brokenLinkPage = (language: Language): Page =>
  notice(400, language, texts.invalidLink);

/** Returns the form for a new password. Includes the error of the previous attempt, if any. */
export function passwordForm(
  appName: string,
  language: Language,
  error?: 'mismatch' | 'invalid',
): Page {
  const text = form[language];
  const field = (name: string, label: string) =>
    `<label>${label}<input type="password" name="${name}" autocomplete="new-password" required></label>`;
  const body = [
    `<p>${escapeHtml(appName)}</p>`,
    ...(error ? [`<p role="alert">${text[error]}</p>`] : []),
    // A form without an action posts to the URL of the page, which contains the token.
    `<form method="post">${field('password', text.password)}${field('repeat', text.repeat)}`,
    `<button>${text.submit}</button></form>`,
  ];
  return htmlPage(error ? 400 : 200, { language, title: text.title, body });
}

function notice(status: number, language: Language, text: Record<Language, PageText>): Page {
  const { title, text: body } = text[language];
  return htmlPage(status, { language, title, body: [`<p>${body}</p>`] });
}
