import { createHash, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { equalInConstantTime } from '../../../shared/crypto.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import {
  countCaptchaAttempt,
  findCaptchaAnswer,
  findCaptchaImage,
  insertCaptcha,
  solveCaptcha,
  spendValidateToken,
} from '../../../shared/db/tables/sign-in.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { sealContexts } from '../../../shared/domain/apps/seal-contexts.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import type { ClientStorage, StoringCaller } from '../client-storage.ts';
import type { ApiDeps } from '../deps.ts';
import type { ReadAudit } from '../operator/audit/audit.ts';
import type { CaptchaShape } from './image.ts';

/** Validated query of requestCaptcha (protocol/codes.md#captchas). */
export interface CaptchaRequest extends Partial<CaptchaShape> {
  /** Validity of the captcha in seconds. */
  ttl?: number | undefined;
}

const defaults = { width: 85, height: 30, size: 4, ttl: 60 };
const maxAttempts = 3;
/** Validity of the token of a solved captcha. */
const validateTokenMs = 5 * 60_000;

type CaptchaDeps = Pick<ApiDeps, 'db' | 'vault' | 'clock' | 'config'>;

/** Image captchas that protect the sending of SMS (protocol/codes.md#captchas). */
export class CaptchaService {
  readonly #deps: CaptchaDeps;
  readonly #storage: ClientStorage;
  readonly #reads: ReadAudit;

  constructor(deps: CaptchaDeps, { storage, reads }: { storage: ClientStorage; reads: ReadAudit }) {
    this.#deps = deps;
    this.#storage = storage;
    this.#reads = reads;
  }

  /**
   * Creates a captcha. Throws error 119 if the app does not require captchas, error 403 if the size
   * or ttl requires the master key, error 429 if one network address requests too many.
   */
  async request(
    caller: StoringCaller,
    request: CaptchaRequest,
  ): Promise<{ captcha_token: string; captcha_url: string }> {
    const { app, isMaster } = caller;
    requireCaptchas(app);
    const { width, height, size, ttl } = { ...defaults, ...request };
    if (!isMaster && (size !== defaults.size || ttl !== defaults.ttl))
      throw refuse('masterKeyRequired');
    this.#storage.accountOf('captchas', caller)?.create(0);
    const { db, vault, clock, config } = this.#deps;
    // Imported with the first captcha: the font and the renderer take 8 MB, and most services draw
    // no captcha.
    const { drawCaptcha, newCaptchaText } = await import('./image.ts');
    const text = newCaptchaText(size);
    const image = await drawCaptcha(text, { width, height, size });
    const id = { appId: app.appId, token: randomBytes(18).toString('base64url') };
    const answer = vault.seal(text, contextOf(id));
    await insertCaptcha(db, {
      ...id,
      answer,
      image,
      expiresAt: new Date(clock.now() + ttl * 1000),
    });
    const query = new URLSearchParams({ appId: app.appId, token: id.token });
    return {
      captcha_token: id.token,
      captcha_url: `${config.publicUrl}/1.1/captchaImage?${query}`,
    };
  }

  /** Returns the image as PNG. Throws error 404 if the captcha is unknown or expired. */
  async image(appId: string, token: string): Promise<Buffer> {
    const now = new Date(this.#deps.clock.now());
    const image = await findCaptchaImage(this.#deps.db, { appId, token }, now);
    if (!image) throw refuse('notFound', 'There is no such captcha, or it has expired.');
    return image;
  }

  /**
   * Returns a validate token, which is valid for one message. Throws error 119 if the app does not
   * require captchas, error 1 if the answer is wrong or the captcha is unusable.
   */
  async verify(app: App, token: string, code: string): Promise<{ validate_token: string }> {
    requireCaptchas(app);
    const { db, clock } = this.#deps;
    const id = { appId: app.appId, token };
    const sealed = await countCaptchaAttempt(db, id, { maxAttempts, now: new Date(clock.now()) });
    if (
      !sealed ||
      !equalInConstantTime(this.#open(id, sealed).toLowerCase(), code.trim().toLowerCase())
    )
      throw wrongCaptcha();
    const validateToken = randomBytes(18).toString('base64url');
    const expiresAt = new Date(clock.now() + validateTokenMs);
    if (!(await solveCaptcha(db, id, { digest: digestOf(validateToken), expiresAt })))
      throw wrongCaptcha();
    return { validate_token: validateToken };
  }

  /**
   * Uses up a validate token as part of `tx`. Throws error 608 if the token is missing or invalid.
   */
  async spend(tx: Handle, appId: string, validateToken: string | undefined): Promise<void> {
    if (validateToken === undefined || validateToken === '') throw refuse('validateTokenMissing');
    const token = { digest: digestOf(validateToken), now: new Date(this.#deps.clock.now()) };
    if (!(await spendValidateToken(tx, appId, token)))
      throw refuse('validateTokenMissing', 'The validate token is wrong, expired or used.');
  }

  /**
   * Returns the answer, for tests of client programs. The read is audited. Throws error 404 if the
   * server is not a test instance.
   */
  async reveal(appId: string, token: string): Promise<{ code: string }> {
    const { db, config } = this.#deps;
    const id = { appId, token };
    const sealed = config.isTest ? await findCaptchaAnswer(db, id) : undefined;
    if (!sealed) throw refuse('notFound');
    await this.#reads.record({ action: 'captcha.reveal', appId, target: appId });
    return { code: this.#open(id, sealed) };
  }

  #open(id: { appId: string; token: string }, sealed: Buffer): string {
    return z.string().parse(this.#deps.vault.open(sealed, contextOf(id)));
  }
}

function requireCaptchas(app: App): void {
  if (!app.options.captchaForSms) throw refuse('notForClients');
}

const wrongCaptcha = () => refuse('wrongCaptcha');

const contextOf = ({ appId, token }: { appId: string; token: string }) =>
  sealContexts.captcha(appId, token);

/** Hashes a token. A token has 144 random bits, so the hash needs no key. */
const digestOf = (token: string) => createHash('sha256').update(token).digest();
