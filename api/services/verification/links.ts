import { createHash, randomBytes } from 'node:crypto';
import { dayMs } from '../../../shared/clock.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import { takeBudget } from '../../../shared/db/tables/messages/send-budgets.ts';
import {
  findLink,
  insertLink,
  type Link,
  type LinkPurpose,
  spendLink,
} from '../../../shared/db/tables/users/link-tokens.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { User } from '../../../shared/domain/users/user.ts';
import type { ApiDeps } from '../deps.ts';
import { enqueueMessage } from '../messages/message-queue.ts';
import { writeMail } from './mails.ts';

/** Validity of a link: one week (protocol/codes.md#validity). */
const linkMs = 7 * 24 * 3_600_000;

/** Limit of mails of one purpose to one address. */
const mailsPerDay = 10;

const tokenForm = /^[\w-]{32}$/;

const paths: Record<LinkPurpose, string> = {
  verifyEmail: '/1.1/verifyEmail',
  resetPassword: '/1.1/resetPassword',
};

/** Hashes a token; 192 random bits need no key. */
const digestOf = (token: string) => createHash('sha256').update(token).digest();

/** Recipient of a mail. */
export type MailRecipient = Pick<User, 'id' | 'email' | 'username'>;

/** Creates, finds and spends links in mails (protocol/codes.md#e-mail-and-password-reset). */
export class MailLinks {
  readonly #deps: Pick<ApiDeps, 'db' | 'vault' | 'queue' | 'clock' | 'config'>;

  constructor(deps: Pick<ApiDeps, 'db' | 'vault' | 'queue' | 'clock' | 'config'>) {
    this.#deps = deps;
  }

  /**
   * Mails a link to a user as part of `tx`. Its URL comes from PUBLIC_URL only
   * (protocol/known-problems.md#links-from-headers).
   */
  async send(tx: Handle, app: App, user: MailRecipient, purpose: LinkPurpose): Promise<void> {
    if (user.email === null) return;
    const { clock, config } = this.#deps;
    const token = randomBytes(24).toString('base64url');
    const expiresAt = new Date(clock.now() + linkMs);
    const link: Link = { appId: app.appId, purpose, userId: user.id, email: user.email };
    await insertLink(tx, link, { digest: digestOf(token), expiresAt });
    const mail = writeMail(app, purpose, {
      appname: app.name,
      email: user.email,
      username: user.username,
      link: `${config.publicUrl}${paths[purpose]}/${token}`,
    });
    await enqueueMessage(this.#deps, tx, app.appId, mail);
  }

  /** Counts a mail of one purpose to one address. Returns false when the daily limit is reached. */
  takeBudget(tx: Handle, { appId }: App, purpose: LinkPurpose, email: string): Promise<boolean> {
    const key = this.#deps.vault.derive(`mail ${purpose} ${email}`).slice(0, 22);
    const budget = { appId, scope: 'mail', key, limit: mailsPerDay, windowMs: dayMs } as const;
    return takeBudget(tx, budget, new Date(this.#deps.clock.now()));
  }

  /** Finds a link; returns undefined for a token that is forged, used or expired. */
  async find(purpose: LinkPurpose, token: string): Promise<Link | undefined> {
    return tokenForm.test(token) ? findLink(this.#deps.db, purpose, this.#key(token)) : undefined;
  }

  /** Spends a link; of concurrent calls one gets it. Returns undefined as `find`. */
  async spend(tx: Handle, purpose: LinkPurpose, token: string): Promise<Link | undefined> {
    return tokenForm.test(token) ? spendLink(tx, purpose, this.#key(token)) : undefined;
  }

  #key(token: string) {
    return { digest: digestOf(token), now: new Date(this.#deps.clock.now()) };
  }
}
