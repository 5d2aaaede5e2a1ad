import { randomBytes } from 'node:crypto';
import { minuteMs } from '../../../../shared/clock.ts';
import { sha256 } from '../../../../shared/crypto.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import {
  type ConsoleSession,
  deleteSession,
  findSession,
  insertLoginCode,
  insertSession,
  listSessions,
  savePerson,
  spendLoginCode,
} from '../../../../shared/db/tables/console.ts';
import { networkOf } from '../../../../shared/domain/addresses.ts';
import {
  type Operator,
  type OperatorRole,
  oidcSessionMs,
  sessionLifeMs,
} from '../../../../shared/domain/admin/operator.ts';
import { Refusal, refuse } from '../../../../shared/domain/errors/errors.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../../deps.ts';
import { recordChange, runAsActor } from '../audit/audit.ts';
import { type PageRequest, toPage } from '../lists/page.ts';
import type { AttemptLimit, CallLimit } from './call-limit.ts';
import { endOf, type OperatorIdentities, ownerOf } from './tokens.ts';

/** Validity of a login code. */
const codeLifeMs = 15 * minuteMs;
/** Maximum length of a stored browser name. */
const maxAgent = 200;

/**
 * Token of the operator, or code of a login link. `replace` confirms that this login may replace
 * another person's session in the browser.
 */
export type Credential = { token: string } | { code: string; replace?: boolean | undefined };

/** Origin of a login. */
export interface LoginClient {
  address: string;
  agent: string;
  requestId: string;
  /** Cookie of the session that the browser already has. */
  cookie: string | undefined;
}

/** Person with the rights of a login by OpenID Connect. */
export interface Person {
  /** Issuer and subject. */
  subject: string;
  name: string;
  mail: string | null;
  role: OperatorRole;
  apps: string[] | null;
}

/** Started session. Only the cookie contains the secret. */
export interface Login {
  operator: Operator;
  cookie: string;
}

/** Login link that was opened in the session of another person. */
export interface OtherPerson {
  /** Person whose session the browser has. */
  current: Operator;
  /** Person whom the link logs in. */
  requested: Operator;
}

/** Error that rolls a login back. */
class NeedsConfirmation extends Error {
  readonly people: OtherPerson;

  constructor(people: OtherPerson) {
    super('the browser has a session of another person');
    this.people = people;
  }
}

/** Sessions of the console (protocol/admin-api.md#sessions). */
export class ConsoleSessionService {
  readonly #deps: ApiDeps;
  readonly #identities: OperatorIdentities;
  readonly #attempts: AttemptLimit;
  readonly #callLimit: CallLimit;
  /** Called after a session has ended. */
  onEnded: () => void = () => undefined;

  constructor(
    deps: ApiDeps,
    identities: OperatorIdentities,
    { attempts, callLimit }: { attempts: AttemptLimit; callLimit: CallLimit },
  ) {
    this.#deps = deps;
    this.#identities = identities;
    this.#attempts = attempts;
    this.#callLimit = callLimit;
  }

  /**
   * Name of the cookie. With the prefix `__Host-`, a browser accepts the cookie only from this host
   * and only over https.
   */
  get cookieName(): string {
    return this.isSecure ? '__Host-carillon' : 'carillon';
  }

  /** Returns a `Set-Cookie` header. An empty value deletes the cookie. */
  cookieHeader(value: string): string {
    const attributes = [
      'Path=/',
      'HttpOnly',
      'SameSite=Strict',
      ...(this.isSecure ? ['Secure'] : []),
    ];
    const seconds = value === '' ? 0 : sessionLifeMs / 1000;
    return [`${this.cookieName}=${value}`, ...attributes, `Max-Age=${seconds}`].join('; ');
  }

  /** True if PUBLIC_URL is https, so that cookies are sent over https only. */
  get isSecure(): boolean {
    return this.#deps.config.publicUrl.startsWith('https://');
  }

  /**
   * Starts a session. Throws error 401 if the token is wrong, or the code is unknown, used or
   * expired. Throws error 429 after too many logins. A link that is opened in another person's
   * session needs `replace`. Without it, no session starts and the link stays valid: anybody can
   * send such a link, and its reader would continue to work under a wrong name.
   */
  async login(credential: Credential, client: LoginClient): Promise<Login | OtherPerson> {
    try {
      return await this.#start(credential, client);
    } catch (error) {
      if (error instanceof NeedsConfirmation) return error.people;
      if (!(error instanceof Refusal) || error.status !== 401) throw error;
      throw this.#attempts.fail(networkOf(client.address), error);
    }
  }

  async #start(credential: Credential, client: LoginClient): Promise<Login> {
    const cookie = randomBytes(32).toString('base64url');
    const current = client.cookie && (await this.#identities.ofCookie(client.cookie));
    const operator = await this.#deps.db.transaction(async (tx) => {
      const tokenId = await this.#tokenIdOf(tx, credential);
      this.#callLimit.take(tokenId, 'logins');
      const session = await this.#insert(tx, { cookie, tokenId, client });
      const isLink = 'code' in credential && !credential.replace;
      if (isLink && current && current.tokenId !== session.tokenId)
        throw new NeedsConfirmation({ current, requested: session });
      const { address, requestId } = client;
      const actor = { ...session, address, requestId };
      const change = { action: 'session.create', target: String(session.session?.id ?? '') };
      await runAsActor(actor, () => recordChange(tx, change));
      return session;
    });
    return { operator, cookie };
  }

  /**
   * Starts the session of a person whom the provider of OpenID Connect has authenticated. Throws
   * error 429 after too many logins of the person.
   */
  async loginPerson(person: Person, client: Omit<LoginClient, 'cookie'>): Promise<Login> {
    const cookie = randomBytes(32).toString('base64url');
    const digest = sha256(randomBytes(32).toString('base64url'));
    const { now } = this.#identities.bounds();
    const endsAt = new Date(now.getTime() + oidcSessionMs);
    const operator = await this.#deps.db.transaction(async (tx) => {
      const tokenId = await savePerson(tx, { ...person, digest, now });
      this.#callLimit.take(tokenId, 'logins');
      const session = await this.#insert(tx, {
        cookie,
        tokenId,
        client: { ...client, cookie: undefined },
        endsAt,
      });
      const { subject, role, apps } = person;
      const change = {
        action: 'session.create',
        target: String(session.session?.id ?? ''),
        after: { subject, role, apps },
      };
      const { address, requestId } = client;
      await runAsActor({ ...session, address, requestId }, () => recordChange(tx, change));
      return session;
    });
    return { operator, cookie };
  }

  async #tokenIdOf(tx: Handle, credential: Credential): Promise<number | null> {
    if ('token' in credential) {
      const holder = await this.#identities.ofToken(credential.token);
      if (!holder) throw new Refusal('unauthorized');
      return holder.tokenId;
    }
    const { marks } = this.#identities;
    const { now } = this.#identities.bounds();
    const spent = await spendLoginCode(tx, sha256(credential.code), { marks, now });
    if (!spent) throw refuse('unauthorized', detail('linkUsed'));
    return spent.tokenId;
  }

  async #insert(
    tx: Handle,
    {
      cookie,
      tokenId,
      client,
      endsAt = null,
    }: { cookie: string; tokenId: number | null; client: LoginClient; endsAt?: Date | null },
  ): Promise<Operator> {
    const bounds = this.#identities.bounds();
    const { marks } = this.#identities;
    const [adminMark = Buffer.alloc(0)] = marks;
    const digest = sha256(cookie);
    const { address } = client;
    const agent = client.agent.slice(0, maxAgent);
    await insertSession(tx, {
      digest,
      adminMark,
      tokenId,
      address,
      agent,
      now: bounds.now,
      endsAt,
    });
    const session = await findSession(tx, digest, { ...bounds, marks });
    // The token was deleted or expired at the same time.
    if (!session) throw new Refusal('unauthorized');
    return ownerOf(session);
  }

  /**
   * Creates a code that logs in once, within 15 minutes, with the permissions of `operator`. Throws
   * error 403 if the caller is a session, because a session could use codes to outlive its end.
   * Throws error 429 after too many codes.
   */
  async createCode(operator: Operator): Promise<{ code: string; url: string; expiresAt: Date }> {
    if (operator.session) throw refuse('forbidden', detail('sessionNoLinks'));
    this.#callLimit.take(operator.tokenId, 'logins');
    const { db, clock, config } = this.#deps;
    const code = randomBytes(32).toString('base64url');
    const expiresAt = new Date(clock.now() + codeLifeMs);
    const [adminMark = Buffer.alloc(0)] = this.#identities.marks;
    await db.transaction(async (tx) => {
      const digest = sha256(code);
      const { tokenId } = operator;
      // False if the token was deleted at the same time.
      if (!(await insertLoginCode(tx, { digest, adminMark, tokenId, expiresAt })))
        throw new Refusal('unauthorized');
      await recordChange(tx, { action: 'login-link.create', target: operator.name });
    });
    // Browsers do not send the fragment, so the code is in no proxy log.
    return { code, url: `${config.publicUrl}/console/login#code=${code}`, expiresAt };
  }

  async list({ before, limit }: PageRequest) {
    const validity = { ...this.#identities.bounds(), marks: this.#identities.marks };
    const rows = await listSessions(this.#deps.db, { before, limit: limit + 1 }, validity);
    const { results, next } = toPage(rows, limit, ({ id }) => id);
    return { results: results.map(toReply), next };
  }

  /** Ends a session. Throws error 404 if the session does not exist. */
  async delete(id: number): Promise<void> {
    await this.#deps.db.transaction(async (tx) => {
      if (!(await deleteSession(tx, id))) throw refuse('notFound', detail('noSession'));
      await recordChange(tx, { action: 'session.delete', target: String(id) });
    });
    this.onEnded();
  }

  /** Ends the session of a call. Does nothing for a token. */
  async logout({ session }: Operator): Promise<void> {
    if (session) await this.delete(session.id);
  }
}

function toReply(session: ConsoleSession) {
  const { id, address, agent, createdAt, seenAt } = session;
  const { name, role, apps } = ownerOf(session);
  return {
    id: String(id),
    name,
    role,
    apps,
    address,
    agent,
    createdAt,
    seenAt,
    expiresAt: endOf(session),
  };
}
