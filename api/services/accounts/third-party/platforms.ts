import type { Clock } from '../../../../shared/clock.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import {
  anonymous,
  requireToken,
  unionOf,
  vouchFor,
} from '../../../../shared/domain/users/auth-data.ts';
import {
  checkOf,
  isAlwaysChecked,
  type PlatformCheck,
  type PlatformConfirmation,
} from '../../../../shared/domain/users/auth-platforms.ts';
import type { CheckedUserChanges, UserChanges } from '../../../../shared/domain/users/changes.ts';
import type { ApiDeps } from '../../deps.ts';
import { checkAccessToken, checkMacToken } from './access-tokens.ts';
import { IdentityTokens } from './identity-tokens.ts';
import { PlatformClients } from './platform-clients.ts';
import { exchangeCode } from './third-party-login.ts';

/** An entry that is verified, and how. */
interface Question {
  platform: string;
  entry: JsonObject;
  check: PlatformCheck;
}

/**
 * Verifies third-party authorization data with the platforms that an app configures
 * (protocol/users.md#checked-platforms, protocol/admin-api.md#platform-checks). Checks every
 * platform of a request (protocol/known-problems.md#authdata-bypass).
 */
export class AuthPlatforms {
  readonly #clock: Clock;
  readonly #clients: PlatformClients;
  readonly #identityTokens: IdentityTokens;

  constructor(deps: Pick<ApiDeps, 'clock'>) {
    this.#clock = deps.clock;
    this.#clients = new PlatformClients(deps.clock);
    this.#identityTokens = new IdentityTokens(this.#clients, deps.clock);
  }

  /**
   * Verifies the entries of a change with their platforms and returns a change that may be written.
   * A platform may complete an entry, such as an entry with the code of a mini program. Skips
   * entries for which `isStored` returns true. Throws error 250 to 252 if a platform rejects its
   * entry, or if the entry must be verified and the app has no settings for its platform. Throws
   * error 503 if a platform gives no clear answer.
   */
  async check(
    app: App,
    changes: UserChanges,
    isStored: (platform: string, entry: JsonObject) => boolean = () => false,
  ): Promise<CheckedUserChanges> {
    const checked = await Promise.all(
      [...changes.authData].map(async ([platform, entry]) => {
        const mustVerify = entry !== null && !isStored(platform, entry);
        return [
          platform,
          mustVerify ? await this.#checkEntry(app, platform, entry) : entry,
        ] as const;
      }),
    );
    return { ...changes, authData: vouchFor(new Map(checked), 'platforms') };
  }

  /** Returns the entry to store. */
  async #checkEntry(app: App, platform: string, entry: JsonObject): Promise<JsonObject> {
    const { authPlatforms } = app.options;
    requireToken(platform, entry);
    const check = checkOf(authPlatforms, platform);
    if (!check) requireUncheckedAllowed(app, platform, entry);
    const confirmation = check && (await this.#confirm(app, { platform, entry, check }));
    // If the app verifies tokens, a UnionID counts only if the platform confirms it.
    const isChecking = Object.keys(authPlatforms).length > 0;
    if (isChecking && unionOf(entry) && confirmation?.unionid !== entry.unionid)
      throw refuse('invalidLinkedSession', 'The UnionID could not be confirmed: invalid authData.');
    return confirmation?.completed ?? entry;
  }

  async #confirm(
    app: App,
    { check, ...given }: Omit<Question, 'check'> & { check: PlatformCheck | 'unusable' },
  ): Promise<PlatformConfirmation> {
    const confirmation =
      check === 'unusable' ? undefined : await this.#ask(app, { ...given, check });
    if (!confirmation)
      throw refuse(given.platform === 'weixin' ? 'invalidWeixinSession' : 'invalidLinkedSession');
    return confirmation;
  }

  /**
   * Returns undefined if the platform rejects the entry. Throws error 503 if the platform gives no
   * clear answer.
   */
  #ask(app: App, { platform, entry, check }: Question): Promise<PlatformConfirmation | undefined> {
    const client = this.#clients.of(app);
    switch (check.kind) {
      case 'identity':
        return this.#identityTokens.check(entry, check.settings);
      case 'code':
        return exchangeCode(client, entry, check.settings);
      case 'mac':
        return checkMacToken(client, {
          platform,
          entry,
          settings: check.settings,
          nowMs: this.#clock.now(),
        });
      default:
        return checkAccessToken(client, {
          platform: check.kind,
          entry,
          settings: check.settings,
        });
    }
  }

  close(): Promise<void> {
    return this.#clients.close();
  }
}

/**
 * Throws error 251 if a platform that is not in `authPlatforms` must be verified. This concerns
 * platforms with identity tokens or codes, and every platform if the option `checkedPlatformsOnly`
 * is set.
 */
function requireUncheckedAllowed({ options }: App, platform: string, entry: JsonObject): void {
  if (platform === anonymous) return;
  if (isAlwaysChecked(platform) || !entry.access_token)
    throw refuse(
      'invalidLinkedSession',
      `Accounts of ${platform} are refused until the option authPlatforms of the app says how they are verified.`,
    );
  if (options.checkedPlatformsOnly)
    throw refuse(
      'invalidLinkedSession',
      `Accounts of ${platform} are refused: the app has the option checkedPlatformsOnly, and its option authPlatforms does not name the platform.`,
    );
}
