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
import type { User } from '../../../shared/domain/users/user.ts';
import { mailboxOf } from '../../../shared/domain/users/user.ts';
import type { ApiDeps } from '../deps.ts';
import { enqueueMessage } from '../messages/message-queue.ts';
import { ipAddressKey } from '../sms/budgets.ts';
import { writeMail } from './mails.ts';

/** Validity of a link: one week (protocol/codes.md#validity). */
const linkMs = 7 * 24 * 3_600_000;

/** Limit of mails of one purpose to one mailbox. */
const mailsPerDay = 10;
/** Limit of mails that one network address may cause per hour. */
const mailsPerIpAddressAndHour = 500;

const tokenForm = /^[\w-]{32}$/;

const paths: Record<LinkPurpose, string> = {
  verifyEmail: '/1.1/verifyEmail',
  resetPassword: '/1.1/resetPassword',
};

/** Hashes a token; 192 random bits need no key. */
const digestOf = (token: string) => createHash('sha256').update(token).digest();

/** Recipient of a mail. */
export type MailRecipient = Pick<User, 'id' | 'email' | 'username'>;

/** Mail with a link. */
export interface MailRequest {
  purpose: LinkPurpose;
  /** Network address that caused it; undefined for servers of the app and for operators. */
  ipAddress: string | undefined;
  /** No user may get the mail, and the caller must not learn that. */
  isDryRun?: boolean;
}

/** Creates, finds and spends links in mails (protocol/codes.md#e-mail-and-password-reset). */
export class MailLinks {
  readonly #deps: Pick<ApiDeps, 'db' | 'vault' | 'queue' | 'clock' | 'config'>;

  constructor(deps: Pick<ApiDeps, 'db' | 'vault' | 'queue' | 'clock' | 'config'>) {
    this.#deps = deps;
  }

  /**
   * Mails a link to a user as part of `tx`, if the budgets of its mailbox and of the network
   * address allow it: every mail to a user takes both. Returns false, and sends nothing, when one
   * of them is used up. A dry run counts, does the same work and takes it back. The URL comes from
   * PUBLIC_URL only (protocol/known-problems.md#links-from-headers).
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
    await enqueueMessage(this.#deps, tx, app.appId, writeMail(app, purpose, { ...values, link: url }));
  }

  #budgets({ appId }: App, email: string, { purpose, ipAddress }: MailRequest): Budget[] {
    const mailbox = this.#deps.vault.derive(`mail ${purpose} ${mailboxOf(email)}`).slice(0, 22);
    const ofMailbox = { appId, scope: 'mail', key: mailbox, limit: mailsPerDay, windowMs: dayMs } as const;
    if (ipAddress === undefined) return [ofMailbox];
    const key = ipAddressKey(this.#deps, ipAddress);
    const limit = mailsPerIpAddressAndHour;
    return [ofMailbox, { appId, scope: 'mailAddress', key, limit, windowMs: hourMs }];
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
